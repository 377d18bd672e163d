/**
 * The rules of all accounts: the database is the source of truth; checks read the copy in memory. Addresses of Slack and secrets are encrypted.
 * Rules are settings that all nodes share. States are not: the node that checks a rule writes its state, and others read it when it is shown.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../core/clock.ts";
import type { Sealing } from "../core/sealing.ts";
import { sql, type SqlQuery, sqlList } from "../core/sql.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import { findToDelete, type SettingsStore, type SharedSettings } from "../database/shared-settings.ts";
import { isPrivateHost } from "../engines/ip-address/index.ts";
import {
  type AlertReceiver,
  type AlertRule,
  type AlertSettings,
  alertSettings,
  type AlertState,
  FIRST_STATE,
} from "./alert-rule.ts";

export interface AlertRulesParts {
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly sealing: Sealing;
  readonly mayBePrivate: boolean;
  /** Rules were added, changed or removed. */
  readonly onChanged: () => void;
}

export const HIDDEN = "[secret]";
const MAX_RULES = 100;

interface Row {
  readonly id: string;
  readonly account_id: string;
  readonly settings: string;
  readonly state: string;
  readonly created_at: number;
  readonly modified_at: number;
}

export class AlertRules implements SettingsStore {
  readonly #parts: AlertRulesParts;
  readonly #rules = new Map<string, AlertRule>();

  constructor(parts: AlertRulesParts) {
    this.#parts = parts;
    parts.settings.register("alert", this);
  }

  load(): Promise<void> {
    return this.#parts.settings.load("alert");
  }

  async reload(ids: readonly string[] | null): Promise<void> {
    const rows = await this.#read(ids === null ? sql`` : sql`WHERE id IN (${sqlList(ids)})`);
    if (ids === null) this.#rules.clear();
    for (const id of ids ?? []) this.#rules.delete(id);
    for (const row of rows) this.#rules.set(row.id, fromRow(row));
    this.#parts.onChanged();
  }

  /** Reads the states of an account's rules if another node may have checked them. */
  async readStates(accountId: string): Promise<void> {
    if (!this.#parts.settings.isShared) return;
    for (const row of await this.#read(sql`WHERE account_id = ${accountId}`)) {
      if (this.#rules.get(row.id)?.modifiedAt === row.modified_at) this.setState(row.id, fromRow(row).state);
    }
  }

  #read(selected: SqlQuery): Promise<Row[]> {
    return this.#parts.database.all<Row>(sql`SELECT * FROM alert_rule ${selected} ORDER BY id`);
  }

  all(): Iterable<AlertRule> {
    return this.#rules.values();
  }

  get size(): number {
    return this.#rules.size;
  }

  list(accountId: string): AlertRule[] {
    return [...this.#rules.values()].filter((rule) => rule.accountId === accountId);
  }

  find(accountId: string, id: string): AlertRule {
    const rule = this.#rules.get(id);
    if (rule?.accountId !== accountId) throw missing();
    return rule;
  }

  byId(id: string): AlertRule | undefined {
    return this.#rules.get(id);
  }

  async create(accountId: string, settings: AlertSettings): Promise<AlertRule> {
    const now = this.#parts.clock.now();
    const id = ulid(now);
    const sealed = JSON.stringify(this.#seal(id, settings, null));
    await this.#parts.settings.write("alert", async (tx, changed) => {
      const row = await tx.get<{ count: number }>(
        sql`SELECT count(*) AS count FROM alert_rule WHERE account_id = ${accountId}`,
      );
      if ((row?.count ?? 0) >= MAX_RULES)
        throw new SignalboxError("invalid_request", {
          message: `An account has at most ${MAX_RULES} alerts`,
        });
      await tx.run(
        sql`INSERT INTO alert_rule (id, account_id, settings, state, created_at, modified_at)
            VALUES (${id}, ${accountId}, ${sealed}, ${JSON.stringify(FIRST_STATE)}, ${now}, ${now})`,
      );
      changed(id);
    });
    return this.find(accountId, id);
  }

  /** A changed rule starts anew: what it measured may be something else now. */
  async update(accountId: string, id: string, settings: AlertSettings): Promise<AlertRule> {
    await this.#parts.settings.write("alert", async (tx, changed) => {
      const row = await tx.get<Row>(
        sql`SELECT * FROM alert_rule WHERE id = ${id} AND account_id = ${accountId}`,
      );
      if (row === undefined) throw missing();
      const before = fromRow(row);
      const sealed = JSON.stringify(this.#seal(id, settings, before.settings));
      const state = JSON.stringify({ ...FIRST_STATE, notifiedAt: before.state.notifiedAt });
      // Measures are stored under this time, so it must be another one.
      const now = Math.max(this.#parts.clock.now(), before.modifiedAt + 1);
      await tx.run(
        sql`UPDATE alert_rule SET settings = ${sealed}, state = ${state}, modified_at = ${now} WHERE id = ${id}`,
      );
      changed(id);
    });
    return this.find(accountId, id);
  }

  async delete(accountId: string, id: string): Promise<AlertRule> {
    const rule = await findToDelete(this.#parts.settings, () => this.find(accountId, id));
    await this.#parts.settings.write("alert", async (tx, changed) => {
      await tx.run(sql`DELETE FROM alert_rule WHERE id = ${id}`);
      changed(id);
    });
    return rule;
  }

  /** The row of the rule is gone, with its account. */
  forget(id: string): void {
    if (this.#rules.delete(id)) this.#parts.onChanged();
  }

  /** The caller stores the state. */
  setState(id: string, state: AlertState): void {
    const rule = this.#rules.get(id);
    if (rule !== undefined) this.#rules.set(id, { ...rule, state });
  }

  /** The address and secret of a receiver; null when no key decrypts them. */
  open(rule: AlertRule, index: number): { readonly url: string; readonly secret: string | undefined } | null {
    const receiver = rule.settings.receivers[index];
    if (receiver === undefined) return null;
    const { sealing } = this.#parts;
    const context = contextOf(rule.id);
    if (receiver.type === "slack") {
      const url = sealing.open(receiver.url, context)?.text;
      return url === undefined ? null : { url, secret: undefined };
    }
    if (receiver.secret === undefined) return { url: receiver.url, secret: undefined };
    const secret = sealing.open(receiver.secret, context)?.text;
    return secret === undefined ? null : { url: receiver.url, secret };
  }

  #seal(id: string, settings: AlertSettings, before: AlertSettings | null): AlertSettings {
    return {
      ...settings,
      receivers: settings.receivers.map((receiver, i) => this.#sealOne(id, receiver, before?.receivers[i])),
    };
  }

  #sealOne(id: string, receiver: AlertReceiver, before: AlertReceiver | undefined): AlertReceiver {
    const seal = (text: string) => this.#parts.sealing.seal(text, contextOf(id));
    if (receiver.type === "slack") {
      if (receiver.url === HIDDEN) {
        if (before?.type === "slack") return before;
        throw hidden("url");
      }
      this.#requirePublic(receiver.url);
      return { type: "slack", url: seal(receiver.url) };
    }
    this.#requirePublic(receiver.url);
    if (receiver.secret === undefined) return receiver;
    if (receiver.secret !== HIDDEN) return { ...receiver, secret: seal(receiver.secret) };
    // A stored secret stays with its address: another receiver could otherwise learn what it signs.
    if (before?.type === "webhook" && before.url === receiver.url && before.secret !== undefined)
      return { ...receiver, secret: before.secret };
    throw hidden("secret");
  }

  #requirePublic(url: string): void {
    const host = URL.parse(url)?.hostname;
    if (host === undefined)
      throw new SignalboxError("invalid_request", { message: "receivers: the address is invalid" });
    if (!this.#parts.mayBePrivate && isPrivateHost(host)) {
      throw new SignalboxError("invalid_request", {
        message: `receivers: ${host} is a private or loopback address; the operator can allow it with outgoing.allowPrivateHosts`,
      });
    }
  }
}

export function showReceiver(receiver: AlertReceiver): AlertReceiver {
  if (receiver.type === "slack") return { type: "slack", url: HIDDEN };
  return receiver.secret === undefined ? receiver : { ...receiver, secret: HIDDEN };
}

function fromRow(row: Row): AlertRule {
  const { receivers, ...settings } = JSON.parse(row.settings) as AlertSettings;
  // Sealed texts do not have the form of an address, so they are not parsed again.
  const known = alertSettings.parse({ ...settings, receivers: [{ type: "slack", url: HIDDEN }] });
  return {
    id: row.id,
    accountId: row.account_id,
    settings: { ...known, receivers },
    state: { ...FIRST_STATE, ...(JSON.parse(row.state) as AlertState) },
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
  };
}

function missing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Alert not found" });
}

function contextOf(id: string): string {
  return JSON.stringify(["alert", id]);
}

function hidden(name: string): SignalboxError {
  return new SignalboxError("invalid_request", {
    message: `receivers: ${HIDDEN} means the stored ${name} of the same receiver, but none is stored`,
  });
}
