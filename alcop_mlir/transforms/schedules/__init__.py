"""Passes that give contractions their schedules: tiles, stages, engine."""
