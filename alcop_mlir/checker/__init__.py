"""Checks certificates that `certificate` has made, and shares no code with it.

It reads the PTX again by a reader of its own, goes once from each listed state, and
looks whether what it meets is listed. There is no search in it: what would take one is
in the certificate, and only gone through here. By room:

    form     what a certificate says, read strictly
    ptx      text, instructions, and where control flows
    logic    linear terms, and proofs that facts contradict each other: these are
             added up, in the order of asking
    machine  what instructions leave in registers of all threads at once, and in cells
             of shared memory; `walk` goes ways on it, and `listed_states` looks which
             one covers what arrives
    bounds   a thread that stands for all goes through each block once, where sizes
             multiply: is each access to global memory inside of its array
    placed   on the ways of `walk`, once more: is each result made of the right
             elements; files `open_*` are for sizes that are known at run time only

Where results are followed, the ways of `walk` are gone once more, and cells are not
looked at: there it is known of more threads than of listed states who accesses them.

There are two kinds of walks, as what one needs the other has to leave out. Shared
memory asks for all threads at once and for ways that are told apart: slots are numbers,
cells are in one state, and what orders nothing is gone over. Accesses to global memory
stand in just what is gone over: each is under guards that sizes decide, and with both
sides of each told apart there would be as many ways as subsets of accesses. So these
are joined where they meet, with what was known on each, and facts of the turn before
are kept, which a listed state forgets. A joined state has no cells, and a register that
is one of several values is no address of shared memory.

`certificate.search.answers` runs all of it to find out what is asked, and to answer.
"""
