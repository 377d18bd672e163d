/** The rules of all accounts: the database is the source of truth; checks read the copy in memory. Addresses of Slack and secrets are encrypted. */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../core/clock.ts";
import type { Sealing } from "../core/sealing.ts";
import { sql } from "../core/sql.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
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

export class AlertRules {
  readonly #parts: AlertRulesParts;
  readonly #rules = new Map<string, AlertRule>();

  constructor(parts: AlertRulesParts) {
    this.#parts = parts;
  }

  async load(): Promise<void> {
    const rows = await this.#parts.database.all<Row>(sql`SELECT * FROM alert_rule ORDER BY id`);
    for (const row of rows) {
      const { receivers, ...settings } = JSON.parse(row.settings) as AlertSettings;
      // Sealed texts do not have the form of an address, so they are not parsed again.
      const known = alertSettings.parse({ ...settings, receivers: [{ type: "slack", url: HIDDEN }] });
      this.#rules.set(row.id, {
        id: row.id,
        accountId: row.account_id,
        settings: { ...known, receivers },
        state: { ...FIRST_STATE, ...(JSON.parse(row.state) as AlertState) },
        createdAt: row.created_at,
        modifiedAt: row.modified_at,
      });
    }
    this.#parts.onChanged();
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
    if (rule?.accountId !== accountId) throw new SignalboxError("not_found", { message: "Alert not found" });
    return rule;
  }

  byId(id: string): AlertRule | undefined {
    return this.#rules.get(id);
  }

  async create(accountId: string, settings: AlertSettings): Promise<AlertRule> {
    if (this.list(accountId).length >= MAX_RULES) {
      throw new SignalboxError("invalid_request", { message: `An account has at most ${MAX_RULES} alerts` });
    }
    const now = this.#parts.clock.now();
    const id = ulid(now);
    const rule: AlertRule = {
      id,
      accountId,
      settings: this.#seal(id, settings, null),
      state: FIRST_STATE,
      createdAt: now,
      modifiedAt: now,
    };
    await this.#parts.database.run(
      sql`INSERT INTO alert_rule (id, account_id, settings, state, created_at, modified_at)
          VALUES (${id}, ${accountId}, ${JSON.stringify(rule.settings)}, ${JSON.stringify(rule.state)}, ${now}, ${now})`,
    );
    return this.#keep(rule);
  }

  /** A changed rule starts anew: what it measured may be something else now. */
  async update(accountId: string, id: string, settings: AlertSettings): Promise<AlertRule> {
    const before = this.find(accountId, id);
    const rule: AlertRule = {
      ...before,
      settings: this.#seal(id, settings, before.settings),
      state: { ...FIRST_STATE, notifiedAt: before.state.notifiedAt },
      modifiedAt: this.#parts.clock.now(),
    };
    await this.#parts.database.run(
      sql`UPDATE alert_rule SET settings = ${JSON.stringify(rule.settings)}, state = ${JSON.stringify(rule.state)},
            modified_at = ${rule.modifiedAt} WHERE id = ${id}`,
    );
    return this.#keep(rule);
  }

  async delete(accountId: string, id: string): Promise<AlertRule> {
    const rule = this.find(accountId, id);
    await this.#parts.database.run(sql`DELETE FROM alert_rule WHERE id = ${id}`);
    this.#rules.delete(id);
    this.#parts.onChanged();
    return rule;
  }

  /** The caller stores the state. */
  setState(id: string, state: AlertState): AlertRule | null {
    const rule = this.#rules.get(id);
    if (rule === undefined) return null;
    const changed = { ...rule, state };
    this.#rules.set(id, changed);
    return changed;
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

  #keep(rule: AlertRule): AlertRule {
    this.#rules.set(rule.id, rule);
    this.#parts.onChanged();
    return rule;
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

function contextOf(id: string): string {
  return JSON.stringify(["alert", id]);
}

function hidden(name: string): SignalboxError {
  return new SignalboxError("invalid_request", {
    message: `receivers: ${HIDDEN} means the stored ${name} of the same receiver, but none is stored`,
  });
}
