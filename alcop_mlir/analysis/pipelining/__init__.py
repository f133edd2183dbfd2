"""Which copies of which loops can be pipelined, and with how many stages.

Recognises copies, checks the rules of docs/architecture.md, plans stages, separates
loop bodies into streams and counts commit groups. Builds on `analysis.ir` and
`analysis.layout`.
"""
