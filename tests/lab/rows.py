"""The kinds of rows of the table."""
import dataclasses

from labkit import Job


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something breaks: the job fails or hangs, `check` names it first, its own fix mends the job."""

    name: str
    inject: tuple  # verbs of nslab
    expect: str  # the code that must come first
    job: Job | None = Job()  # None: hurts no witness
    check: tuple | None = None  # arguments of `distdoctor check`; None: --peers and the job's settings
    hosts: int = 2
    at: int = 0  # the host that `check` runs on
    live: bool = False  # the job is left hanging while `check` looks
    cure: tuple = ("heal all",)  # what a person does where the printed fix is manual; proves the fault, too
    cure_job: dict = dataclasses.field(default_factory=dict)  # the cure in the job's environment
    cure_args: tuple = ()  # the cure in torchrun's arguments
    cure_files: dict = dataclasses.field(default_factory=dict)  # the cure in the shared folder
    closed: tuple = ()  # (from, to, port): must still be closed after the fix
    files: dict = dataclasses.field(default_factory=dict)  # in the lab's shared folder, {shared} in `check`
    nets: tuple = ("10.10.0", "10.20.0")
    rounds: int = 1  # check, fix, try again so often at most
    needs: tuple = ()  # programs
    rule: str = ""  # words that its evidence must have: the deciding rule of a firewall


@dataclasses.dataclass(frozen=True)
class Shape:
    """Healthy: the job passes, `check` has no finding of severity blocker or degraded and exits 0."""

    name: str
    inject: tuple = ()
    job: Job | None = Job()
    check: tuple | None = None
    hosts: int = 2
    live: bool = False
    late: tuple = ()  # hosts whose ranks start only after `check`
    user: str = "root"
    exits: tuple = (0,)
    needs: tuple = ()


@dataclasses.dataclass(frozen=True)
class Collective:
    """`bisect` names this first by real runs of Gloo between the hosts; mended as it prints, or by the cure, it finds nothing."""

    name: str
    expect: str  # "": it is healthy
    inject: tuple = ()
    cure: tuple = ("heal all",)  # where the printed fix is no environment
    hosts: int = 2
    args: tuple = ()
    most_runs: int = 0  # a healthy one ends within so many
    nets: tuple = ("10.10.0", "10.20.0")
    needs: tuple = ()


@dataclasses.dataclass(frozen=True)
class Trouble:
    """`check` itself is treated badly. `act(lab)` returns None or what was wrong."""

    name: str
    act: object
    inject: tuple = ()
    hosts: int = 3
    needs: tuple = ()


def peers(hosts):
    return ("--peers", ",".join("node%d" % i for i in range(hosts)))


def check_args(row, job, shared):
    """The command line that a user of this job would type."""
    if row.check is not None:
        return [word.replace("{shared}", shared) for word in row.check]
    return [*peers(row.hosts), *(job.settings() if job else [])]
