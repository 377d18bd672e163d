/**
 * The statements on the history of instances. One store is one PostgreSQL; `agent_owner.id` identifies an instance in its store.
 *
 * `agent_owner` is written at creation, claim, release and snapshot, never for a commit of an instance: updated rows become dead rows, and one
 * old snapshot in the server (a backup, a forgotten session) would make every later look-up of such a row slower.
 */

export interface Statements {
  /** $1 bytes of all records, $2 ids, $3 positions, $4 epochs, $5 offsets, $6 lengths, $7 kinds, $8 nodes. Returns the ids whose record was written. */
  readonly append: string;
  /** $1 ids. */
  readonly states: string;
  /** $1 keys, $2 store numbers, $3 node, $4 format, $5 data of the claims. Creates what does not exist, with a claim; returns all rows. */
  readonly locate: string;
  readonly find: string;
  /** $1 id, $2 epoch, $3 node, $4 position. Locks the row; no row if another node is the owner. */
  readonly beginSnapshot: string;
  /** $1 id, $2 position, $3 pages, $4 bytes per page. */
  readonly snapshot: string;
  readonly putPart: string;
  readonly cutParts: string;
  /** $1 ids, $2 epochs, $3 nodes, $4 last positions, $5 positions of the claims. */
  readonly sweep: string;
  /** $1 ids, $2 epochs, $3 nodes, $4 the next owner. */
  readonly release: string;
  /** $1 id, $2 epoch, $3 node. */
  readonly snapshotOf: string;
  /** $1 ids, $2 epochs, $3 last acknowledged positions. Returns how many of the records up to there are missing. */
  readonly lost: string;
  /** $1 id, $2 first part, $3 number of parts. */
  readonly parts: string;
  /** $1 id, $2 position before the first, $3 last position, $4 number of records, $5 bytes after which no further record follows. */
  readonly records: string;
  /** `data` is that of the claims. */
  takeOver(node: string, format: number, claims: readonly SeenEpoch[], data: Buffer): string;
  destroy(claim: OwnClaim): string;
}

/** An instance, and the epoch that the claimant has read. */
export interface SeenEpoch {
  readonly id: number;
  readonly epoch: number;
}

/**
 * A claim of a node. The epoch alone would identify it as long as PostgreSQL loses nothing. If a server replaces the primary without its last commits, an epoch
 * may be given out a second time, to another node: each statement of an owner names both.
 */
export interface OwnClaim extends SeenEpoch {
  readonly node: string;
}

/** Kinds of records: a claim, changed pages, changed pages of a database that begins as a template. */
export const KINDS = { claim: "c", pages: "f", first: "t" } as const;

export interface AppendConditions {
  /** Is the writer the owner (`OwnClaim`)? */
  readonly epoch: string;
  /** Does the record before this one exist? */
  readonly predecessor: string;
}

export const CONDITIONS: AppendConditions = {
  epoch: "g.epoch = v.e AND g.owner = v.n",
  predecessor:
    "(v.s = g.snap_seq + 1 OR EXISTS (SELECT 1 FROM agent_log p WHERE p.agent = v.a AND p.seq = v.s - 1))",
};

/** The conditions are parameters for tests, which prove that neither can be dropped. */
export function appendStatement({ epoch, predecessor }: AppendConditions): string {
  return `INSERT INTO agent_log (agent, seq, epoch, kind, data)
    SELECT v.a, v.s, v.e, v.k::"char", substring($1::bytea FROM v.o FOR v.l)
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::integer[], $6::integer[], $7::text[], $8::bigint[])
      AS v(a, s, e, o, l, k, n)
    JOIN agent_owner g ON g.id = v.a AND ${epoch}
    WHERE ${predecessor}
    ON CONFLICT DO NOTHING RETURNING agent`;
}

const ROW = `o.id, o.key, o.store, o.owner::text AS owner, o.epoch, o.format, o.snap_seq AS "snapSeq", o.part_bytes AS "partBytes"`;

export const STATEMENTS: Statements = {
  append: appendStatement(CONDITIONS),
  states: `SELECT o.id, o.owner::text AS owner, o.epoch, GREATEST((SELECT max(seq) FROM agent_log l WHERE l.agent = o.id), o.snap_seq) AS head
    FROM agent_owner o WHERE o.id = ANY ($1::bigint[])`,
  // An instance of another store has only the number of the store here: the unique key decides where an instance is, whichever node creates it.
  locate: `WITH made AS (
      INSERT INTO agent_owner (key, store, owner, epoch, format, snap_seq)
      SELECT v.k, v.s, CASE WHEN v.s = 0 THEN $3::bigint END, 1, $4::integer, 0
      FROM unnest($1::bytea[], $2::integer[]) AS v(k, s)
      ON CONFLICT (key) DO NOTHING RETURNING id, key, store, owner, epoch, format, snap_seq, part_bytes),
    claimed AS (
      INSERT INTO agent_log (agent, seq, epoch, kind, data) SELECT id, 1, 1, '${KINDS.claim}', $5::bytea FROM made WHERE store = 0)
    SELECT ${ROW}, true AS "isMade" FROM made o
    UNION ALL SELECT ${ROW}, false FROM agent_owner o WHERE o.key = ANY ($1::bytea[])`,
  find: `SELECT ${ROW}, false AS "isMade" FROM agent_owner o WHERE o.key = ANY ($1::bytea[])`,
  beginSnapshot:
    "SELECT id FROM agent_owner WHERE id = $1 AND epoch = $2 AND owner = $3 AND snap_seq <= $4 FOR UPDATE",
  snapshot: `UPDATE agent_owner SET snap_seq = $2, snap_pages = $3, page_bytes = $4,
      part_bytes = (SELECT COALESCE(sum(octet_length(data)), 0) FROM agent_part WHERE agent = $1)
    WHERE id = $1 RETURNING part_bytes AS "partBytes"`,
  putPart: `INSERT INTO agent_part (agent, part, seq, data) VALUES ($1, $2, $3, $4)
    ON CONFLICT (agent, part) DO UPDATE SET seq = EXCLUDED.seq, data = EXCLUDED.data`,
  cutParts: `DELETE FROM agent_part WHERE agent = $1 AND part >= $2`,
  sweep: `DELETE FROM agent_log l USING unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS v(a, e, n, s, c)
    JOIN agent_owner g ON g.id = v.a AND g.epoch = v.e AND g.owner = v.n AND g.snap_seq >= v.s
    WHERE l.agent = v.a AND l.seq <= v.s AND l.seq <> v.c`,
  release: `UPDATE agent_owner o SET owner = $4::bigint FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS v(i, e, n)
    WHERE o.id = v.i AND o.epoch = v.e AND o.owner = v.n`,
  snapshotOf: `SELECT snap_seq AS "snapSeq", snap_pages AS "pages", page_bytes AS "pageBytes" FROM agent_owner
    WHERE id = $1 AND epoch = $2 AND owner = $3`,
  // A claim of a later epoch is behind the last record that its node has seen. An instance that does not exist may have been destroyed by its next owner.
  lost: `SELECT COALESCE(sum(GREATEST(0, v.h - COALESCE(
        (SELECT min(l.seq) - 1 FROM agent_log l WHERE l.agent = v.a AND l.epoch > v.e),
        GREATEST((SELECT max(l.seq) FROM agent_log l WHERE l.agent = v.a), o.snap_seq)))), 0)::float8 AS lost
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS v(a, e, h) JOIN agent_owner o ON o.id = v.a`,
  parts: `SELECT p.part, p.seq, p.data FROM agent_part p WHERE p.agent = $1 AND p.part >= $2 ORDER BY p.part LIMIT $3`,
  // The length of a value is known without reading the value.
  records: `SELECT l.seq, l.kind::text AS kind, l.data FROM (
      SELECT seq, kind, data, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before
      FROM agent_log WHERE agent = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4) l
    WHERE l.before < $5 ORDER BY l.seq`,
  /**
   * Begins a transaction. A node that was declared dead holds no lock any more: its transactions end before (`postgres-session`). The rows are locked in
   * one order, so that two nodes do not wait for each other. The last position is read by a statement of its own, after the epoch was increased. The
   * last result has the instances whose claim was written.
   */
  takeOver(node, format, claims, data) {
    const ids = claims.map(({ id }) => id).join(",");
    const values = claims.map(({ id, epoch }) => `(${id}::bigint, ${epoch}::bigint)`).join(",");
    return `BEGIN;
      SELECT id FROM agent_owner WHERE id IN (${ids}) ORDER BY id FOR UPDATE;
      UPDATE agent_owner o SET owner = ${BigInt(node)}, epoch = o.epoch + 1, format = ${format}
        FROM (VALUES ${values}) AS v(i, e) WHERE o.id = v.i AND o.epoch = v.e;
      INSERT INTO agent_log (agent, seq, epoch, kind, data)
        SELECT o.id, GREATEST((SELECT max(seq) FROM agent_log l WHERE l.agent = o.id), o.snap_seq) + 1, o.epoch, '${KINDS.claim}', '\\x${data.toString("hex")}'
        FROM (VALUES ${values}) AS v(i, e) JOIN agent_owner o ON o.id = v.i AND o.epoch = v.e + 1 AND o.owner = ${BigInt(node)}
        ON CONFLICT DO NOTHING RETURNING agent AS id, seq, epoch;
      SELECT o.id, o.snap_seq AS "snapSeq", o.part_bytes AS "partBytes" FROM agent_owner o WHERE o.id IN (${ids})`;
  },
  /** In one transaction. A late writer finds no row of the instance; a new instance of the name has another id. */
  destroy({ id, epoch, node }) {
    return `BEGIN; SET LOCAL statement_timeout = 0;
      WITH gone AS (DELETE FROM agent_owner WHERE id = ${id} AND epoch = ${epoch} AND owner = ${BigInt(node)} RETURNING id) SELECT id FROM gone;
      DELETE FROM agent_log WHERE agent = ${id} AND NOT EXISTS (SELECT 1 FROM agent_owner WHERE id = ${id});
      DELETE FROM agent_part WHERE agent = ${id} AND NOT EXISTS (SELECT 1 FROM agent_owner WHERE id = ${id});
      COMMIT`;
  },
};
