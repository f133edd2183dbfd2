"""Checks certificates that `certificate` has made, and shares no code with it.

It reads the PTX again by a reader of its own (`text`, `instructions`), goes once from
each listed state (`walk`, `check`), and looks whether what it meets is listed. There is
no search in it. What would take one is in the certificate, and only gone through here:

    facts          each question whether facts contradict each other is answered by a
                   proof, or by nobody; proofs are added up, the order is that of asking
    check          which listed state covers what arrives
    registers      one interpreter of instructions: numbers of all threads as vectors,
                   terms, sums of both (`arithmetic`, `mixed`, `predicates`)
    thread         the same for a thread that stands for all, where sizes multiply
    ways, bounds   its way through the kernel, and whether each access is inside

`certificate.answers` runs all of it to find out what is asked, and to answer.
"""
