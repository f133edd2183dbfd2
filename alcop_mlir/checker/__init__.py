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
    ways, bounds   its way through each block once, and whether each access is inside;
                   what turns of loops add and leave is in the certificate

There are two walks, as what one needs the other has to leave out. Shared memory asks
for all threads at once and for ways that are told apart: slots are numbers, cells are
in one state, and what orders nothing is gone over. Accesses to global memory stand in
just what is gone over: each is under guards that sizes decide, and with both sides of
each told apart there would be as many ways as subsets of accesses. So these are joined
where they meet, with what was known on each, and facts of the turn before are kept,
which a listed state forgets. A joined state has no cells, and a register that is one of
several values is no address of shared memory.

`certificate.answers` runs all of it to find out what is asked, and to answer.
"""
