"""How a row is played: inject, look at the job, ask `check`, apply its fix, look again."""
import dataclasses
import shutil
import subprocess
import traceback

from labkit import LabError
from rows import Collective, Fault, Shape, Trouble, check_args, peers


PATIENCE = 4  # deadlines of a job that should pass are so many times longer: it ends early anyway


@dataclasses.dataclass
class Result:
    """A line of the table."""

    before: str = "-"
    code: str = "-"
    fix: str = "-"
    after: str = "-"
    verdict: str = "ok"
    why: str = ""

    def failed(self, why):
        self.verdict, self.why = "FAILED", why
        return self

    def skipped(self, why):
        self.verdict, self.why = "skipped", why
        return self


def play(lab, row, prove):
    missing = [p for p in row.needs if not shutil.which(p)]
    if missing:
        return Result().skipped("no " + ", ".join(missing))
    if prove and isinstance(row, (Trouble, Collective)):
        return Result().skipped("nothing to prove")
    try:
        lab.up(getattr(row, "nets", None))
        for name, text in getattr(row, "files", {}).items():
            lab.write_shared(name, text)
        lab.apply(row.inject)
        if prove:
            return prove_fault(lab, row) if isinstance(row, Fault) else prove_shape(lab, row)
        if isinstance(row, Fault):
            return play_fault(lab, row)
        if isinstance(row, Collective):
            return play_collective(lab, row)
        return play_shape(lab, row) if isinstance(row, Shape) else play_trouble(lab, row)
    except (LabError, subprocess.TimeoutExpired) as error:
        return Result().failed("lab: %s" % error)
    except Exception:  # a bug of the harness is one failed row, never a lost table
        return Result().failed(traceback.format_exc().strip().replace("\n", " / ")[-400:])


def cured(lab, row, job):
    """Undo the fault as a person would where no command can."""
    lab.apply(row.cure)
    return dataclasses.replace(job, on={}, ranks=None, args=row.cure_args or job.args).with_env("*", row.cure_job)


def prove_fault(lab, row):
    result = Result(fix="cure")
    if row.job is None:
        return result.skipped("hurts no witness")
    before = lab.play(row.job)
    result.before = before.word
    if before.word == "skip":
        return result.skipped(before.text)
    if before.word == "pass":
        return result.failed("the fault does not hurt the job")
    after = lab.play(cured(lab, row, row.job), PATIENCE)
    result.after = after.word
    return result if after.word == "pass" else result.failed("the job stays broken: " + after.text[-300:])


def prove_shape(lab, row):
    running = lab.start(row.job, visible=row.live or bool(row.late))
    running.await_ready()
    running.start(row.late)
    outcome = running.finish(row.job.deadline * PATIENCE)
    result = Result(after=outcome.word)
    return result if outcome.word == "pass" else result.failed("job: " + outcome.text.strip()[-300:])


def play_fault(lab, row):
    result, job = Result(), row.job
    running = lab.start(job, visible=row.live) if job else None
    if running and not row.live:
        if not note_before(result, running.finish()):
            return result
        running = None
    for _ in range(row.rounds):
        report = look(lab, row, job)
        if running:
            if not note_before(result, running.finish(1)):
                return result
            running = None
        if report.trouble:
            return result.failed(report.trouble)
        problem = judge(result, row, report)
        if problem:
            return result.failed(problem)
        job = apply_fix(lab, row, job, report.findings[0], result)
        if result.verdict != "ok":
            return result
        after = lab.play(job, PATIENCE) if job else None
        result.after = after.word if after else recheck(lab, row, job)
        if result.after in ("pass", "clean"):
            return still_closed(lab, row, result)
    return result.failed("not mended: %s" % (after.text.strip()[-300:] if after else ""))


def note_before(result, outcome):
    result.before = outcome.word
    if outcome.word == "skip":
        result.skipped(outcome.text)
    elif outcome.word == "pass":
        result.failed("the fault does not hurt the job")
    return result.verdict == "ok"


def look(lab, row, job):
    return lab.check(check_args(row, job, lab.shared), host=row.at)


def judge(result, row, report):
    """The first round must name the code; later rounds may name what the first had hidden."""
    code = report.findings[0]["code"] if report.findings else "none"
    first_round = result.code == "-"
    result.code = code if first_round else "%s, %s" % (result.code, code)
    if first_round and code != row.expect:
        return "expected %s" % row.expect
    if first_round and row.rule not in evidence_of(report.findings[0]):
        return "its evidence does not name the rule: %s" % row.rule
    if not first_round and not report.loud():
        return "the job is still broken and nothing more is found"
    return None


def evidence_of(finding):
    return "\n".join("%s: %s" % (e["fact"], e["observed"]) for e in finding.get("evidence", []))


def apply_fix(lab, row, job, finding, result):
    """Apply what is printed, in order; a fix that is only for hands is replaced by the row's cure."""
    done, cells = False, [] if result.fix == "-" else [result.fix]
    job = job and dataclasses.replace(job, ranks=None)  # whoever was missing starts, too
    for step in finding.get("fix", []):
        if step.get("kind") == "shell":
            cells.append(step["command"])
            problem = run_shell(lab, step)
            if problem:
                result.fix = "; ".join(cells)
                result.failed(problem)
                return job
            done = True
        elif step.get("kind") == "env" and job:
            cells.append(" ".join("%s=%s" % kv for kv in step["env"].items()))
            job = job.with_env(step["node"], step["env"])
            done = True
    if not done:
        cells.append("manual")
        for name, text in row.cure_files.items():
            lab.write_shared(name, text)
        job = cured(lab, row, job) if job else lab.apply(row.cure)
    result.fix = "; ".join(cells)
    with open(lab.path("fix.txt"), "w") as f:
        f.write("\n".join(cells) + "\n")
    return job


def run_shell(lab, step):
    hosts = range(lab.hosts) if step["node"] == "*" else [step["node"].removeprefix("node")]
    for host in hosts:
        status, out, err = lab.run(host, ["bash", "-c", step["command"]])
        if status != 0:
            return "the fix failed on node%s (%s): %s" % (host, status, (err or out).strip()[-200:])
    return None


def recheck(lab, row, job):
    """Where no witness is hurt, `check` itself must no longer report the code."""
    report = look(lab, row, job)
    return "still" if report.trouble or row.expect in report.loud() else "clean"


def still_closed(lab, row, result):
    """What the firewall hid before must stay hidden: a fix opens what the job needs and no more."""
    for source, target, port in row.closed:
        lab.nslab("fault", target, "port", str(port))
        if lab.dial(source.removeprefix("node"), target, port):
            return result.failed("the fix opened port %d of %s as well" % (port, target))
    return result


def bisect(lab, row, env=()):
    words = [word for pair in env for word in ("--env", "%s=%s" % pair)]
    args = (*peers(row.hosts), "--backend", "gloo", "--master", "node0:29500", *row.args, *words)
    return lab.check(args, limit=240, command="bisect")


def play_collective(lab, row):
    result = Result(before="slow" if "slow" in row.name else "-")
    report = bisect(lab, row)
    if report.trouble:
        return result.failed(report.trouble)
    found = report.findings
    result.code = found[0]["code"] if found else "none"
    if not row.expect:
        runs = len(report.json.get("experiments", []))
        result.fix = "none needed, %d runs" % runs
        if report.loud() or report.status != 0:
            return result.failed("a false alarm: exit %s, %s" % (report.status, ", ".join(sorted(report.loud()))))
        return result if runs <= row.most_runs else result.failed("%d runs" % runs)
    if result.code != row.expect:
        return result.failed("expected %s" % row.expect)
    env = [pair for step in found[0].get("fix", []) if step["kind"] == "env" for pair in step["env"].items()]
    result.fix = " ".join("%s=%s" % (name, value.lstrip("=")) for name, value in env) or "cure"
    if not env:
        lab.apply(row.cure)
    again = bisect(lab, row, env)
    still = again.trouble or (row.expect in again.loud() and "it is still found")
    result.after = "still" if still else "clean"
    return result.failed(still) if still else result


def play_shape(lab, row):
    result = Result(fix="none needed")
    running = lab.start(row.job, visible=True) if row.job and (row.live or row.late) else None
    if running:
        running.await_ready()
    report = lab.check(check_args(row, row.job, lab.shared), user=row.user)
    if running:
        running.start(row.late)
    outcome = (running.finish(row.job.deadline * PATIENCE) if running else lab.play(row.job, PATIENCE)) if row.job else None
    result.after = outcome.word if outcome else "-"
    if report.trouble:
        return result.failed(report.trouble)
    result.code = ", ".join(f["code"] for f in report.findings) or "healthy"
    if report.loud():
        return result.failed("false alarm: " + ", ".join(report.loud()))
    if report.status not in row.exits:
        return result.failed("exit %s" % report.status)
    if outcome and outcome.word != "pass":
        return result.failed("job: " + outcome.text.strip()[-300:])
    return result


def play_trouble(lab, row):
    result = Result()
    problem = row.act(lab)
    return result.failed(problem) if problem else result
