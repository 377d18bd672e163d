/** What operators see and do while instances hang and fail: reads of busy instances, work that is run and removed, and what is wrong over all agents. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const AGENTS = "/accounts/default/agents";
const ONCE = { retry: { maxAttempts: 1 } };
/** A delay is a random part of its bound: of three centuries, surely longer than the test. */
const LATER = { retry: { maxAttempts: 3, baseDelayMs: 1e13, maxDelayMs: 1e13 } };

const OPTIONS: TestServerOptions = {
  file: { agents: { modules: [join(import.meta.dirname, "../fixtures/debug-agents.ts")] } },
};

let folder: string;
let server: TestServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-debugging-"));
  server = await startTestServer({ ...OPTIONS, dataDir: folder });
});

afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const call = async (name: string, method: string, ...args: unknown[]) =>
  (await server.api("POST", `/agents/gated/${name}/rpc/${method}`, args)).body.result;
const at = (name: string, path = "") => `${AGENTS}/gated/instances/${name}${path}`;
const get = async (path: string) => (await server.api("GET", path)).body.result;
const messageOf = ({ status, body }: { status: number; body: { errors: { message: string }[] } }) => [
  status,
  body.errors[0]?.message,
];
/** Ends the turns that wait at the gate, through an instance that is not busy. */
const openGate = (gate: string) => call("opener", "open", gate);

describe("an instance with a turn that does not end", () => {
  it("shows what is committed at once, and nothing that the turn has changed since", async () => {
    const hanging = call("busy", "hang");
    const shown = await waitUntil(
      () => get(at("busy")),
      (detail) => detail?.state?.step === "committed",
    );
    expect(shown).toMatchObject({
      state: { step: "committed", items: [] },
      turn: { kind: "rpc", label: "hang" },
      in_memory: true,
    });
    expect(Date.parse(shown.busy_since)).toBeLessThanOrEqual(Date.now());
    expect(await get(at("busy", "/queue"))).toEqual([]);
    expect(await get(at("busy", "/dead-letters"))).toEqual([]);
    expect(await get(at("busy", "/schedules"))).toEqual([]);
    const sql = await server.api("POST", at("busy", "/sql"), { sql: "SELECT name FROM step" });
    expect(sql.body.result.rows).toEqual([{ name: "committed" }]);
    const waiting = call("busy", "done");
    const [row] = await get(`${AGENTS}/gated/instances?problem=stuck&stuck_seconds=0`);
    expect(row).toMatchObject({ name: "busy", turn: { label: "hang" } });
    const problems = await get(`${AGENTS}/problems?stuck_seconds=0`);
    expect(problems).toMatchObject({
      totals: { stuck: 1 },
      instances: [{ name: "busy", problems: ["stuck"] }],
    });
    // The totals are of all problems, whichever are shown.
    const others = await get(`${AGENTS}/problems?stuck_seconds=0&problem=dead_letters`);
    expect(others).toEqual({ ...problems, instances: [] });
    await openGate("busy");
    await Promise.all([hanging, waiting]);
    expect(await get(at("busy"))).toMatchObject({ state: { step: "done" }, busy_since: null, turn: null });
  });
});

describe("queue items", () => {
  it("are removed and run, also while another item runs; the running one is refused", async () => {
    const [running, second, third] = await call("q", "addAll", ["wait q", "second", "third"]);
    await waitUntil(
      () => get(at("q", `/queue/${running}`)),
      (item) => item?.running === true,
    );
    expect(messageOf(await server.api("DELETE", at("q", `/queue/${running}`)))).toEqual([
      409,
      "The item is running now; it can be removed when this attempt has ended",
    ]);
    expect((await server.api("POST", at("q", `/queue/${running}/run`), {})).status).toBe(409);
    expect((await server.api("DELETE", at("q", `/queue/${second}`))).body.result).toEqual({ id: second });
    expect(messageOf(await server.api("DELETE", at("q", `/queue/${second}`)))).toEqual([
      404,
      "Queue item not found",
    ]);
    expect((await server.api("POST", at("q", "/queue/nope/run"), {})).status).toBe(404);
    expect((await get(at("q", "/queue"))).map(({ id }: { id: string }) => id)).toEqual([running, third]);
    await openGate("q");
    await waitUntil(
      () => call("q", "done"),
      (done) => done.includes("third"),
    );
    expect(await call("q", "done")).toEqual(["wait q", "third"]);
  });

  it("that wait for another attempt are run at once, before the others, from the command line", async () => {
    const failing = await call("front", "add", "fail later", LATER);
    const waiting = await waitUntil(
      () => get(at("front", `/queue/${failing}`)),
      (item) => item?.last_error != null,
    );
    expect(waiting).toMatchObject({ attempts: 1, running: false });
    const ran = await runCommand(server, ["agents", "queue", "run", "gated", "front", failing]);
    expect(ran.out).toBe(`${failing} runs now\n`);
    await waitUntil(
      () => get(at("front", `/queue/${failing}`)),
      (item) => item?.attempts === 2 && !item.running,
    );
    const listed = await server.api("GET", `${AGENTS}/gated/instances?problem=retrying`);
    expect(listed.body.result).toMatchObject([{ name: "front", queued: 1, retrying: 1 }]);
    expect((await runCommand(server, ["agents", "queue", "delete", "gated", "front", failing])).code).toBe(0);
    const again = await runCommand(server, ["agents", "queue", "delete", "gated", "front", failing]);
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("Queue item not found")]);
    const writes = await server.api("GET", "/accounts/default/audit_logs?limit=100");
    expect(JSON.stringify(writes.body)).toContain(`/queue/${failing}`);
  });
});

it("a change that meets the end of its instance does not create it again", async () => {
  await call("ending", "add", "later", LATER);
  const change = () => server.api("POST", at("ending", "/dead-letters/replay"), {});
  const destroyed = server.api("DELETE", at("ending"));
  const statuses: number[] = [];
  for (let isGone = false; !isGone;) {
    const { status } = await change();
    statuses.push(status);
    isGone = status === 404;
  }
  expect((await destroyed).status).toBe(200);
  expect([200, 404, 410, 503]).toEqual(expect.arrayContaining(statuses));
  expect((await server.api("GET", at("ending"))).status).toBe(404);
});

describe("schedules", () => {
  it("are run now and keep their time, and are cancelled", async () => {
    const id = await call("s", "plan", "0 0 1 1 *", "yearly");
    const [before] = await get(at("s", "/schedules"));
    const { body } = await server.api("POST", at("s", `/schedules/${id}/run`), {});
    expect(body.result).toEqual({ id, due_at: before.due_at });
    await waitUntil(
      () => call("s", "done"),
      (done) => done.length === 1,
    );
    expect(await get(at("s", `/schedules/${id}`))).toMatchObject({
      due_at: before.due_at,
      attempts: 0,
      running: false,
    });
    const once = await call("s", "plan", 3600, "once");
    expect((await runCommand(server, ["agents", "schedules", "run", "gated", "s", once])).code).toBe(0);
    await waitUntil(
      () => get(at("s", "/schedules")),
      (all) => all.length === 1,
    );
    expect((await runCommand(server, ["agents", "schedules", "delete", "gated", "s", id])).out).toBe(
      `${id} removed\n`,
    );
    expect(messageOf(await server.api("DELETE", at("s", `/schedules/${id}`)))).toEqual([
      404,
      "Schedule not found",
    ]);
    expect((await server.api("POST", at("s", `/schedules/${id}/run`), {})).status).toBe(404);
    expect(await call("s", "done")).toEqual(["yearly", "once"]);
  });

  it("a schedule that runs once is not cancelled while it runs; a recurring one is, and does not run again", async () => {
    const once = await call("c", "plan", 0, "wait once");
    await waitUntil(
      () => get(at("c", `/schedules/${once}`)),
      (shown) => shown?.running === true,
    );
    expect((await server.api("DELETE", at("c", `/schedules/${once}`))).status).toBe(409);
    expect((await server.api("POST", at("c", `/schedules/${once}/run`), {})).status).toBe(409);
    await openGate("once");
    await waitUntil(
      () => get(at("c", "/schedules")),
      (all) => all.length === 0,
    );
    const yearly = await call("c", "plan", "0 0 1 1 *", "wait yearly");
    await server.api("POST", at("c", `/schedules/${yearly}/run`), {});
    await waitUntil(
      () => get(at("c", `/schedules/${yearly}`)),
      (shown) => shown?.running === true,
    );
    expect((await server.api("DELETE", at("c", `/schedules/${yearly}`))).status).toBe(200);
    await openGate("yearly");
    await waitUntil(
      () => get(at("c")),
      (detail) => detail.busy_since === null,
    );
    expect(await get(at("c", "/schedules"))).toEqual([]);
  });
});

describe("what is wrong", () => {
  const names = ["letter-2", "letter-10", "letter-1"];

  it("is listed over all agents with totals, sorted and filtered, and survives a restart", async () => {
    for (const name of names)
      for (let i = 0; i < (name === "letter-10" ? 2 : 1); i++) await call(name, "add", `fail ${i}`, ONCE);
    await call("letter-3", "add", "fine");
    const read = () => get(`${AGENTS}/problems?problem=dead_letters`);
    await waitUntil(read, ({ totals }) => totals.dead_letters === 4);
    await server.stop();
    server = await startTestServer({ ...OPTIONS, dataDir: folder });
    const problems = await read();
    expect(problems.totals).toMatchObject({ dead_letters: 4, dead_letter_instances: 3, stuck: 0 });
    expect(problems.by_agent).toEqual([{ agent: "gated", ...problems.totals }]);
    expect((await get(`${AGENTS}/problems?agent=inbox`)).by_agent).toEqual([]);
    expect(problems.instances).toHaveLength(3);
    expect(problems.instances[0]).toMatchObject({
      agent: "gated",
      problems: ["dead_letters", "error"],
      last_error: expect.stringMatching(/^RangeError: cannot do fail/),
    });
    const list = async (query: string, search = "letter") =>
      (await get(`${AGENTS}/gated/instances?search=${search}&${query}`)).map(
        ({ name }: { name: string }) => name,
      );
    expect(await list("")).toEqual(["letter-1", "letter-2", "letter-3", "letter-10"]);
    expect(await list("problem=any")).toEqual(["letter-1", "letter-2", "letter-10"]);
    expect(await list("order=dead_letters")).toEqual(["letter-10", "letter-1", "letter-2", "letter-3"]);
    expect(await list("problem=error&within=1", "nothing")).toEqual([]);
    const pages: string[] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const more = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const path = `${AGENTS}/gated/instances?search=letter&order=dead_letters&limit=1${more}`;
      const { body } = await server.api("GET", path);
      pages.push(body.result[0].name);
      cursor = body.result_info.cursor;
    }
    expect(pages).toEqual(["letter-10", "letter-1", "letter-2", "letter-3"]);
    expect((await server.api("GET", `${AGENTS}/gated/instances?order=queued&cursor=nonsense`)).status).toBe(
      400,
    );
    const shown = await runCommand(server, ["agents", "problems", "--problem", "dead_letters"]);
    expect(shown.out).toMatch(/gated\/letter-10 .*dead_letters/);
    await server.api("POST", "/accounts", { id: "other" });
    expect((await get("/accounts/other/agents/problems")).totals.instances).toBe(0);
    const stranger = await server.token(["webhooks.read"]);
    expect((await server.api("GET", `${AGENTS}/problems`, undefined, stranger)).status).toBe(403);
  });

  it("dead letters of all instances are replayed step by step, and discarded", async () => {
    const replay = async (body: object) =>
      (await server.api("POST", `${AGENTS}/gated/dead-letters/replay`, body)).body.result;
    const first = await replay({ limit: 1 });
    expect(first).toMatchObject({ replayed: 1, instances: 1, failed: [], remaining_instances: 2 });
    const rest = await replay({ cursor: first.cursor });
    expect(rest).toMatchObject({ replayed: 3, instances: 2, remaining_instances: 0, cursor: null });
    // They fail again.
    const read = () => get(`${AGENTS}/problems?problem=dead_letters`);
    await waitUntil(read, ({ totals }) => totals.dead_letters === 4);
    const all = await runCommand(server, ["agents", "dead-letters", "replay", "gated", "--all"]);
    expect(all.out).toBe("replayed 4 of 3 instances\n");
    await waitUntil(read, ({ totals }) => totals.dead_letters === 4);
    const discarded = await runCommand(server, [
      "agents",
      "dead-letters",
      "delete",
      "gated",
      "letter-10",
      "--all",
    ]);
    expect(discarded.out).toBe("discarded 2\n");
    await waitUntil(read, ({ totals }) => totals.dead_letters === 2);
    expect(await replay({ limit: 0 })).toBeNull();
    await server.api("DELETE", at("letter-1"));
    expect((await read()).totals).toMatchObject({ dead_letters: 1, dead_letter_instances: 1 });
  });
});

describe("the timeline of an instance", () => {
  const timeline = (name: string, query = "") => get(at(name, `/timeline${query}`));

  it("shows calls, queue items by their method, failures and state changes, also after a restart", async () => {
    const hanging = call("timed", "hang");
    await openGate("timed");
    await hanging;
    await call("timed", "add", "fail hard", ONCE);
    await waitUntil(
      () => timeline("timed", "?failed=true"),
      (turns) => turns.length === 1,
    );
    await server.stop();
    server = await startTestServer({ ...OPTIONS, dataDir: folder });
    const turns = await timeline("timed");
    expect(turns.map(({ kind, label }: { kind: string; label: string }) => `${kind} ${label}`)).toEqual([
      "queue work",
      "rpc add",
      "rpc hang",
    ]);
    const [work, , hang] = turns;
    expect(work).toMatchObject({ error: "cannot do fail hard", changes_state: false, skipped: 0 });
    expect(await get(at("timed", `/timeline/${work.id}`))).toMatchObject({
      reference: work.reference,
      payload: JSON.stringify({ label: "fail hard" }),
      state: null,
      stack: expect.stringContaining("debug-agents"),
    });
    expect(hang.changes_state).toBe(true);
    expect((await get(at("timed", `/timeline/${hang.id}`))).state).toEqual({
      truncated: false,
      changes: [{ path: [], before: null, after: JSON.stringify({ step: "done", items: [] }) }],
    });
    expect(await timeline("timed", "?kind=rpc&limit=1")).toMatchObject([{ label: "add" }]);
    expect((await get(at("timed"))).in_memory).toBe(false);
  });

  it("is seen with agents.read only, and ends with the instance", async () => {
    await call("seen", "done");
    const [turn] = await timeline("seen");
    const stranger = await server.token(["webhooks.read"]);
    const reader = await server.token(["agents.read"]);
    const status = async (path: string, token: string) =>
      (await server.api("GET", at("seen", path), undefined, token)).status;
    expect(await status("/timeline", stranger)).toBe(403);
    expect(await status(`/timeline/${turn.id}`, stranger)).toBe(403);
    expect(await status(`/timeline/${turn.id}`, reader)).toBe(200);
    expect((await server.api("GET", at("timed", `/timeline/${turn.id}`))).status).toBe(404);
    await server.api("DELETE", at("seen"));
    expect((await server.api("GET", at("seen", "/timeline"))).status).toBe(404);
    await call("seen", "done");
    expect(await timeline("seen")).toHaveLength(1);
  });

  it("records nothing of a class that is excluded", async () => {
    await server.api("POST", "/agents/private-notes/n/rpc/note", ["secret"]);
    expect(await get(`${AGENTS}/private-notes/instances/n/timeline`)).toEqual([]);
  });
});
