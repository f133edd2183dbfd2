"""Measuring candidates: devices, whole programs, pools of machines."""
