/**
 * A model of the fence: two nodes, one instance, and a PostgreSQL whose statements are split where others can come between. `explore` visits every
 * order of the steps and reports the first one after which something is wrong.
 *
 * An append has two steps, because a statement decides on a snapshot and writes later. A take-over has three: it locks the row and increases the
 * epoch, it writes its record, it commits. Until the commit no other statement sees it, but a record at the same position waits for it.
 */

export interface Rules {
  readonly checksEpoch: boolean;
  readonly checksPredecessor: boolean;
  /** A node reads the history before it has claimed. */
  readonly readsBeforeClaim: boolean;
  /** A record whose outcome is unknown is sent again, at the next free position. */
  readonly retriesBlindly: boolean;
  /** Records are deleted only when no statement that began before the snapshot runs. */
  readonly hasGrace: boolean;
}

export const SAFE: Rules = {
  checksEpoch: true,
  checksPredecessor: true,
  readsBeforeClaim: false,
  retriesBlindly: false,
  hasGrace: true,
};

interface LogRecord {
  readonly seq: number;
  readonly epoch: number;
  readonly node: string;
  /** Null for a claim. */
  readonly value: string | null;
  /** What the writer believed the database to contain before this record. */
  readonly base: string;
}

interface Statement {
  readonly record: LogRecord;
  /** The answer of the conditions, on the snapshot of the statement. */
  readonly isAllowed: boolean;
  /** The snapshot of the instance when the statement began. */
  readonly snapSeq: number;
  /** The node does not wait for it any more. */
  readonly isLate: boolean;
}

interface Node {
  readonly name: string;
  /** Steps to do. */
  readonly plan: readonly Step[];
  readonly epoch: number;
  readonly claimSeq: number;
  readonly head: number;
  /** The content of its database. */
  readonly content: string;
  readonly isFenced: boolean;
}

export type Step = "lock" | "claim" | "commit" | "read" | "begin" | "write" | "snapshot" | "delete";

interface World {
  readonly nodes: readonly Node[];
  readonly epoch: number;
  readonly owner: string;
  readonly snapSeq: number;
  readonly parts: string;
  readonly log: readonly LogRecord[];
  /** The take-over that has not committed. */
  readonly pending: { readonly node: string; readonly record: LogRecord | null } | null;
  readonly statements: readonly Statement[];
  readonly acknowledged: readonly string[];
  readonly values: number;
  /** How often the environment may still interfere. */
  readonly cuts: number;
  readonly losses: number;
}

export interface Environment {
  /** Connections that are cut while a record is on its way. */
  readonly cuts: number;
  /** The server is replaced by one without the last commit. */
  readonly losses: number;
}

export const TAKE_OVER: readonly Step[] = ["lock", "claim", "commit", "read"];
export const APPEND: readonly Step[] = ["begin", "write"];

/** Returns the number of visited states, and the first violation. */
export function explore(
  plans: readonly [readonly Step[], readonly Step[]],
  rules: Rules,
  environment: Environment,
): { readonly states: number; readonly violation: string | null } {
  const seen = new Set<string>();
  const stack: World[] = [firstWorld(plans, rules, environment)];
  for (let world = stack.pop(); world !== undefined; world = stack.pop()) {
    const text = JSON.stringify(world);
    if (seen.has(text)) continue;
    seen.add(text);
    const violation = check(world);
    if (violation !== null) return { states: seen.size, violation };
    stack.push(...next(world, rules));
  }
  return { states: seen.size, violation: null };
}

/** The first node has created the instance. */
function firstWorld(
  [first, second]: readonly [readonly Step[], readonly Step[]],
  rules: Rules,
  { cuts, losses }: Environment,
): World {
  const node = { epoch: 0, claimSeq: 0, head: 0, content: "", isFenced: false };
  return {
    nodes: [
      { ...node, name: "A", plan: reorder(first, rules), epoch: 1, claimSeq: 1, head: 1 },
      { ...node, name: "B", plan: reorder(second, rules) },
    ],
    epoch: 1,
    owner: "A",
    snapSeq: 0,
    parts: "",
    log: [{ seq: 1, epoch: 1, node: "A", value: null, base: "" }],
    pending: null,
    statements: [],
    acknowledged: [],
    values: 0,
    cuts,
    losses,
  };
}

function reorder(plan: readonly Step[], { readsBeforeClaim }: Rules): readonly Step[] {
  if (!readsBeforeClaim) return plan;
  const text = plan.join(" ").replaceAll("lock claim commit read", "read lock claim commit");
  return text.split(" ") as Step[];
}

function next(world: World, rules: Rules): World[] {
  const worlds = world.nodes.flatMap((node) => steps(world, node, rules));
  // A statement whose node does not wait any more is still executed, or never.
  for (const statement of world.statements.filter(({ isLate }) => isLate)) {
    worlds.push(without(world, statement));
    worlds.push(...execute(world, statement).map(({ world: after }) => after));
  }
  if (world.losses > 0 && world.pending === null) worlds.push(...lose(world));
  return worlds;
}

/** What may happen when the node does its next step; nothing if it has to wait. */
function steps(world: World, node: Node, rules: Rules): World[] {
  const [step, ...plan] = node.plan;
  if (step === undefined) return [];
  const done = { ...node, plan };
  // A fenced node claims again, if that is in its plan.
  if (node.isFenced && step !== "lock" && !(rules.readsBeforeClaim && step === "read"))
    return [replace(world, done)];
  switch (step) {
    case "lock":
      if (world.pending !== null) return [];
      return [{ ...replace(world, done), pending: { node: node.name, record: null } }];
    case "claim":
      return claim(world, node, done);
    case "commit":
      return commit(world, done);
    case "read":
      return [replace(world, read(world, done, rules))];
    case "begin":
      return [begin(world, done, rules)];
    case "write":
      return write(world, done, rules);
    case "snapshot":
      if (world.pending !== null) return [];
      return [
        node.epoch === world.epoch && node.name === world.owner && node.head >= world.snapSeq
          ? { ...replace(world, done), snapSeq: node.head, parts: node.content }
          : replace(world, { ...done, isFenced: true }),
      ];
    case "delete":
      return sweep(world, done, rules);
  }
}

function claim(world: World, node: Node, done: Node): World[] {
  const seq = Math.max(world.snapSeq, ...world.log.map((record) => record.seq)) + 1;
  const record = { seq, epoch: world.epoch + 1, node: node.name, value: null, base: "" };
  return [{ ...replace(world, done), pending: { node: node.name, record } }];
}

function commit(world: World, done: Node): World[] {
  const record = world.pending?.record ?? null;
  if (record === null) return [];
  // Another record was faster: the take-over is rolled back. (The node gives up; trying again is a longer plan.)
  if (world.log.some(({ seq }) => seq === record.seq))
    return [{ ...replace(world, { ...done, plan: done.plan.slice(1), isFenced: true }), pending: null }];
  const { epoch, seq } = record;
  const claimed = { ...done, epoch, claimSeq: seq, head: seq, isFenced: false };
  return [
    {
      ...replace(world, claimed),
      pending: null,
      epoch,
      owner: done.name,
      log: [...world.log, record],
    },
  ];
}

function read(world: World, done: Node, { readsBeforeClaim }: Rules): Node {
  const upTo = readsBeforeClaim ? Infinity : done.claimSeq;
  return { ...done, content: contentOf(world, upTo) };
}

function begin(world: World, done: Node, rules: Rules): World {
  const { name, epoch, head, content } = done;
  const value = String(world.values);
  const record = { seq: head + 1, epoch, node: name, value, base: content };
  const statement = judge(world, record, rules);
  return { ...replace(world, done), values: world.values + 1, statements: [...world.statements, statement] };
}

function judge(world: World, record: LogRecord, rules: Rules): Statement {
  const isOwner = record.epoch === world.epoch && record.node === world.owner;
  const hasPast = record.seq === world.snapSeq + 1 || world.log.some(({ seq }) => seq === record.seq - 1);
  const isAllowed = (isOwner || !rules.checksEpoch) && (hasPast || !rules.checksPredecessor);
  return { record, isAllowed, snapSeq: world.snapSeq, isLate: false };
}

/** The second step of an append: it is executed and answered; executed and the answer is lost; or on its way for a long time. */
function write(world: World, done: Node, rules: Rules): World[] {
  const statement = world.statements.find(({ record, isLate }) => record.node === done.name && !isLate);
  if (statement === undefined) return [replace(world, done)];
  const executed = execute(world, statement);
  const worlds = executed.map(({ world: after, isWritten }) =>
    isWritten ? acknowledge(after, done, statement.record) : replace(after, { ...done, isFenced: true }),
  );
  if (world.cuts > 0) {
    const cut = { ...world, cuts: world.cuts - 1 };
    for (const { world: after, isWritten } of execute(cut, statement))
      worlds.push(resolve(after, done, statement.record, isWritten, rules));
    const late = cut.statements.map((one) => (one === statement ? { ...one, isLate: true } : one));
    worlds.push(resolve({ ...cut, statements: late }, done, statement.record, false, rules));
  }
  return worlds;
}

/** The answer did not arrive: the node reads the last position and the epoch. */
function resolve(world: World, done: Node, record: LogRecord, isWritten: boolean, rules: Rules): World {
  if (rules.retriesBlindly) {
    const seq = Math.max(world.snapSeq, ...world.log.map((one) => one.seq)) + 1;
    const again = judge(world, { ...record, seq }, rules);
    const [sent] = execute({ ...world, statements: [...world.statements, again] }, again);
    if (sent?.isWritten === true) return acknowledge(sent.world, done, again.record);
    return replace(world, { ...done, isFenced: true });
  }
  return isWritten && world.epoch === done.epoch
    ? acknowledge(world, done, record)
    : replace(world, { ...done, isFenced: true });
}

function acknowledge(world: World, done: Node, { seq, value, base }: LogRecord): World {
  const content = base + (value ?? "");
  return {
    ...replace(world, { ...done, head: seq, content }),
    acknowledged: [...world.acknowledged, value ?? ""],
  };
}

/** Nothing if the statement has to wait for a take-over that writes the same position. */
function execute(world: World, statement: Statement): { world: World; isWritten: boolean }[] {
  const after = without(world, statement);
  const { record, isAllowed } = statement;
  if (!isAllowed) return [{ world: after, isWritten: false }];
  if (world.pending?.record?.seq === record.seq) return [];
  if (world.log.some(({ seq }) => seq === record.seq)) return [{ world: after, isWritten: false }];
  return [{ world: { ...after, log: [...after.log, record] }, isWritten: true }];
}

function sweep(world: World, done: Node, { hasGrace }: Rules): World[] {
  if (done.epoch !== world.epoch || done.name !== world.owner) return [replace(world, done)];
  if (hasGrace && world.statements.some(({ snapSeq }) => snapSeq < world.snapSeq)) return [];
  const log = world.log.filter(({ seq }) => seq > world.snapSeq || seq === done.claimSeq);
  return [{ ...replace(world, done), log }];
}

/** The last commit is gone, and what had been read of it is not. */
function lose(world: World): World[] {
  const last = world.log.toSorted((a, b) => a.seq - b.seq).at(-1);
  if (last === undefined || last.seq <= world.snapSeq || last.seq === 1) return [];
  const log = world.log.filter((record) => record !== last);
  const acknowledged = world.acknowledged.filter((value) => value !== last.value);
  const before = log.findLast(({ value }) => value === null);
  const owner = last.value === null ? (before?.node ?? world.owner) : world.owner;
  const epoch = last.value === null ? world.epoch - 1 : world.epoch;
  // Statements on the former server are lost with it.
  return [{ ...world, log, acknowledged, epoch, owner, statements: [], losses: world.losses - 1 }];
}

function replace(world: World, node: Node): World {
  return { ...world, nodes: world.nodes.map((one) => (one.name === node.name ? node : one)) };
}

function without(world: World, statement: Statement): World {
  return { ...world, statements: world.statements.filter((one) => one !== statement) };
}

function contentOf(world: World, upTo: number): string {
  return (
    world.parts +
    recordsOf(world, upTo)
      .map(({ value }) => value ?? "")
      .join("")
  );
}

function recordsOf({ log, snapSeq }: World, upTo: number): LogRecord[] {
  return log.filter(({ seq }) => seq > snapSeq && seq <= upTo).toSorted((a, b) => a.seq - b.seq);
}

/** Null if everything that was acknowledged is in the history, once, and each record follows what its writer had seen. */
function check(world: World): string | null {
  const content = contentOf(world, Infinity);
  for (const value of world.acknowledged) {
    const count = content.split(value).length - 1;
    if (count !== 1) return `the acknowledged record ${value} is there ${count} times: ${content}`;
  }
  if (new Set(content).size !== content.length) return `a record is there twice: ${content}`;
  let before = world.parts;
  let last = world.snapSeq;
  for (const { seq, value, base } of recordsOf(world, Infinity)) {
    if (seq !== last + 1) return `record ${last + 1} is missing`;
    last = seq;
    if (value === null) continue;
    if (base !== before) return `record ${value} was written on "${base}" and follows "${before}"`;
    before += value;
  }
  return null;
}
