"""The passes, in rooms by stage; `pipelines.registry` lists them in their order."""
