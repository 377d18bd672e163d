/** An agent of the published package. */
import { Agent, callable, type Connection, getAgentByName, getCurrentAgent } from "agents";
import { show } from "./show";

type DeskState = { count: number; log: unknown[] };

export class Desk extends Agent<Env, DeskState> {
  initialState: DeskState = { count: 0, log: [] };

  onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, body BLOB, text TEXT)`;
  }

  shouldConnectionBeReadonly(_connection: Connection, { request }) {
    return new URL(request.url).searchParams.has("readonly");
  }

  validateStateChange(next: DeskState) {
    if (next.count < 0) throw new RangeError("count must not be negative");
  }

  onStateChanged(state: DeskState, source: Connection | "server") {
    if (state.count === 100) this.broadcast(`changed by ${source === "server" ? "server" : "a client"}`);
  }

  onConnect(connection: Connection, { request }) {
    connection.send(`hello ${new URL(request.url).searchParams.get("user")}`);
  }

  onMessage(connection: Connection, message: string | ArrayBuffer) {
    if (message === "throw") throw new Error("in onMessage");
    connection.send(typeof message === "string" ? `message ${message}` : message);
  }

  onError(connection: Connection | unknown, error?: unknown) {
    this.broadcast(`error ${(error ?? connection).message}`);
  }

  async onRequest(request: Request) {
    if (request.method === "DELETE") throw new RangeError("in onRequest");
    return Response.json([request.method, new URL(request.url).pathname, this.name, await request.text()], {
      status: 202,
    });
  }

  log(entry: unknown) {
    this.setState({ ...this.state, log: [...this.state.log, entry] });
  }

  @callable()
  add(amount: number) {
    this.setState({ ...this.state, count: this.state.count + amount });
    return this.state.count;
  }

  @callable()
  fail(kind: string) {
    if (kind === "text") throw "only text";
    throw kind === "range" ? new RangeError("out of range") : new Error("");
  }

  @callable()
  async failAfterWriting() {
    this.sql`INSERT INTO note (text) VALUES ('kept')`;
    this.setState({ ...this.state, count: 50 });
    await Promise.resolve();
    throw new Error("after writing");
  }

  @callable({ description: "returns its arguments" })
  echo(...values: unknown[]) {
    return values;
  }

  @callable()
  special() {
    return { date: new Date(0), none: undefined, map: new Map([[1, 2]]), nan: NaN };
  }

  @callable()
  cyclic() {
    const value: Record<string, unknown> = {};
    value.self = value;
    return value;
  }

  hidden() {
    return "not callable";
  }

  @callable({ streaming: true })
  async countTo(stream, limit: number) {
    for (let i = 1; i <= limit; i += 1) stream.send({ i });
    stream.end("done");
  }

  @callable({ streaming: true })
  async streamAndFail(stream) {
    stream.send("first");
    throw new Error("in the stream");
  }

  @callable({ streaming: true })
  async streamError(stream) {
    stream.send("first");
    stream.error("by hand");
  }

  @callable({ streaming: true })
  neverEnded(stream) {
    stream.send("only");
  }

  @callable()
  notes() {
    this.sql`INSERT INTO note (body, text) VALUES (${new Uint8Array([1, 2])}, ${null})`;
    return this.sql`SELECT body, text FROM note ORDER BY id`.map((row) => show(row));
  }

  @callable()
  badSql() {
    return this.sql`SELECT * FROM missing`;
  }

  @callable()
  async schedules() {
    const due = new Date(Date.now() + 3_600_000);
    const made = [
      await this.schedule(3600, "tick", { a: 1 }),
      await this.schedule(due, "tick", "text"),
      await this.schedule("0 12 * * *", "tick"),
      await this.scheduleEvery(60, "tick", [1]),
    ];
    const shape = ({ id, time, ...rest }) => [typeof id, typeof time, show(rest)];
    const cancelled = await this.cancelSchedule(made[0].id);
    const again = await this.cancelSchedule(made[0].id);
    const left = (await this.listSchedules()).map(({ type }) => type).sort();
    const crons = (await this.listSchedules({ type: "cron" })).length;
    for (const { id } of made.slice(1)) await this.cancelSchedule(id);
    return { made: made.map(shape), cancelled, again, left, crons };
  }

  @callable()
  async badSchedules() {
    const tries = [
      () => this.schedule(1, "noSuchMethod"),
      () => this.schedule("not a cron", "tick"),
      () => this.scheduleEvery(-1, "tick"),
      () => this.getSchedule("missing"),
    ];
    const results: unknown[] = [];
    for (const attempt of tries)
      results.push(
        await Promise.resolve()
          .then(attempt)
          .then(show, (error) => ({ throws: show(error) })),
      );
    return results;
  }

  @callable()
  async soon() {
    await this.schedule(2, "tick", "scheduled");
    await this.queue("tick", "queued 1");
    await this.queue("tick", "queued 2");
  }

  async tick(payload: unknown, item: Record<string, unknown>) {
    this.log([payload, typeof item?.id, item?.callback ?? null]);
  }

  @callable()
  async other(name: string) {
    const other = await getAgentByName(this.env.Desk, name);
    const error = await other.fail("range").then(() => null, show);
    const { agent, connection } = getCurrentAgent();
    return [await other.add(2), await other.hidden(), error, agent?.name, connection !== undefined];
  }

  @callable()
  async callables() {
    return [...this.getCallableMethods().keys()].sort();
  }

  @callable()
  connections() {
    return [...this.getConnections()].length;
  }
}
