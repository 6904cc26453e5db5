"""What was promised, looked at after a run of the crash matrix: each function yields a sentence for what does not hold."""
import collections
import json

from matrix_handlers import REJECT, WAIT
from matrix_run import SLOTS

def state_of(e):
    return (e["state"], e.get("reason"))


def expected_states(run, update_id):
    chat, kind = run.fed[update_id]
    if kind == "edited_message":
        return {("done", None), ("dead", "expired")}
    if run.delivery != "dropin" and chat == REJECT:
        return {("dead", "rejected")}
    if run.delivery != "dropin" and chat == WAIT:
        return {("dead", "discarded")}
    return {("done", None)}


def violations_at_death(run):
    """Of what was promised to Telegram and to consumers before the crash."""
    events = run.before["stored"]["in"]
    there = {e["update_id"] for e in events}
    for i in sorted(run.before["believed"] - there):
        yield f"Telegram believes that {i} arrived, and it is not in the spool"
    done = {e["id"] for e in events if e["state"] == "done"}
    for i in sorted(run.before["acked"] - done):
        yield f"{i} was acknowledged to its consumer, and is not done in the spool"


def violations_of_record(what, total, before, done_before, done_now, slots):
    """Once, or twice where the crash fell between the success and its durable completion."""
    twice = 0
    for i in sorted(done_now):
        times = total[i]
        if times == 0:
            yield f"{what} {i} is done and was not handled"
        elif times > 1 and before is None:
            yield f"{what} {i} was handled {times} times without a crash"
        elif times > 2 or (times == 2 and (i in done_before or before[i] != 1)):
            yield f"{what} {i} was handled {times} times, {before[i]} of them before the crash, done: {i in done_before}"
        twice += times > 1
    if twice > slots:
        yield f"{twice} were handled twice, and {slots} can be under way"
    for i in sorted(set(total) - set(done_now)):
        yield f"{what} {i} was handled and is not done"


def violations_of_order(run, events):
    """In each lane an event is not started before those in front of it that succeeded have done so. The drop-in API has
    one lane."""
    lanes, ended = collections.defaultdict(list), set()
    for e in sorted(events, key=lambda e: e["seq"]):
        if e["state"] == "done":
            lanes["all" if run.delivery == "dropin" else e["lane"]].append(e["id"])
    for r in run.spool.record.lines():
        in_order = lanes["all" if run.delivery == "dropin" else r["lane"]]
        if r["word"] == "start" and r["id"] in in_order:
            ahead = [i for i in in_order[:in_order.index(r["id"])] if i not in ended]
            if ahead:
                yield f"{r['id']} of {r['lane']} was started before {', '.join(ahead)} in front of it"
        if r["word"] == "end":
            ended.add(r["id"])


def violations(run):
    """Sentences about what was promised and does not hold, after the last life."""
    if run.before:
        yield from violations_at_death(run)
    stored = run.stored()
    times = collections.Counter(e["update_id"] for e in stored["in"])
    for i in run.fed:
        if times[i] != 1:
            yield f"update {i} is {times[i]} times in the spool"
    for e in stored["in"]:
        if e["update_id"] in run.fed and state_of(e) not in expected_states(run, e["update_id"]):
            yield f"{e['id']} of chat {run.fed[e['update_id']][0]} ended as {state_of(e)}"
    before = run.before
    done_before = {e["id"] for e in before["stored"]["in"] if e["state"] == "done"} if before else set()
    yield from violations_of_record("event", collections.Counter(run.spool.record.ids()), before and before["ends"],
                                    done_before, {e["id"] for e in stored["in"] if e["state"] == "done"}, SLOTS)
    yield from violations_of_order(run, stored["in"])
    if run.delivery == "call":
        yield from violations_of_calls(run, stored["out"])
    r = run.spool.cli("verify", code=None)
    if r.returncode:
        yield f"verify ends with {r.returncode}: {r.stdout}{r.stderr}"


def violations_of_calls(run, calls):
    """A call's text is the id of the event that made it. One was refused (400), none may be missing."""
    def texts(events):
        return [json.loads(e["payload"])["text"] if isinstance(e["payload"], str) else e["payload"]["text"]
                for e in events]
    made = collections.Counter(texts(calls))
    for text, n in made.items():
        if n > 1:
            yield f"the call of {text} was made {n} times"
    rejected = [e for e in calls if e["state"] == "dead"]
    if len(rejected) > 1 or any(e["state"] not in ("done", "dead") for e in calls):
        yield f"calls ended as {collections.Counter(map(state_of, calls))}"
    done = set(texts([e for e in calls if e["state"] == "done"]))
    before = run.before
    done_before = set(texts([e for e in before["stored"]["out"] if e["state"] == "done"])) if before else set()
    yield from violations_of_record("call of", collections.Counter(run.sent_calls()), before and before["calls"],
                                    done_before, done, SLOTS)
