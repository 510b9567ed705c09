"""Declarative conformance cases, run on machine-learning frameworks and judged by the name of what was seen.

The modules follow the flow of a case; each imports only from those above it::

    target       where a case runs, and selectors that pick such places
    case         the types that a case file is made of
    document     YAML text with positions
    literal      literals of case files as arrays
    vocabulary   the functions that a program may use
    program      programs, and what is wrong with them
    framework    what is known of a framework before it is imported
    parameters   what takes the place of $name
    rules        what a schema cannot say of a case
    load         case files -> Case
    ahead        what compiling can tell of a case, where nothing runs
    expand       Case -> Check
    lower        program -> native source
    library      case files -> compiled checks, cached by content
    environment  a clean environment with one release of a framework
    selection    which checks a user asks for
    chips        the accelerators of this machine, and which host has which
    host         runs in the framework's own process (with one of runtimes/)
    pool         hosts that run ahead
    judge        Observation -> Outcome
    results      records of a run, in a file
    drawing      a layout -> a picture of it
    wording      plain data -> texts fit to be shown
    record       an answer -> a record
    difference   two observations -> what sets them apart
    compare      two runs -> what changed between them
    contract     which changes count
    merge        several results files -> one run
    repeat       several runs of one thing -> what is not stable
    bisection    the releases between two -> the first that differs
    side         what a user compares -> a run
    baseline     runs of releases -> a folder of files that is kept
    recheck      what changed -> what holds when it is looked for again
    findings     a verdict -> all that is said of it, as plain types
    announce     that, for people and machines
    kinds        what a check comes to, for people
    history      results of many releases -> what each of them showed, and where that changed
    page         results -> all that the report says
    render       that -> one HTML page
    summary      that -> a terminal
    repro        a check -> a script that stands alone
    site         histories -> all that a published site says, page by page
    dataset      that -> data to take away
    badge        a tally -> a small picture
    publish      all of that -> a folder of pages
    plugin       all of it as pytest tests
    cli          the command

Importing this package imports no framework.
"""

__version__ = "0.1.0"
