/** A worker that answers no requests of the network. */
import {
  DurableObject,
  RpcTarget,
  WorkerEntrypoint,
  WorkflowEntrypoint,
  type WorkflowEvent,
  type WorkflowStep,
} from "cloudflare:workers";
import type { Stock } from "../../shop/src/server.ts";
import { describe } from "../../shop/src/module-state.ts";

declare const RELEASE: string;

interface Env {
  readonly WHO: string;
  readonly STOCK: Service<Stock>;
  readonly ACCOUNT: DurableObjectNamespace<Account>;
}

export class Account extends DurableObject<Env> {
  add(by: number): { who: string; total: number } {
    const total = (this.ctx.storage.kv.get<number>("total") ?? 0) + by;
    this.ctx.storage.kv.put("total", total);
    return { who: this.env.WHO, total };
  }

  async viaShop(): Promise<unknown> {
    return { taken: await this.env.STOCK.take("pot"), exports: Object.keys(this.ctx.exports).toSorted() };
  }
}

class Basket extends RpcTarget {
  async sum(values: readonly number[], onItem: (text: string) => Promise<void>): Promise<number> {
    for (const value of values) await onItem(`item ${value}`);
    return values.reduce((sum, value) => sum + value, 0);
  }
}

export class Prices extends WorkerEntrypoint<Env, { currency: string }> {
  of(item: string): string {
    return `${item.length} ${this.ctx.props.currency} ${RELEASE}`;
  }

  open(): Basket {
    return new Basket();
  }
}

export class Invoice extends WorkflowEntrypoint<Env, { amount: number }> {
  override async run(event: WorkflowEvent<{ amount: number }>, step: WorkflowStep): Promise<unknown> {
    return step.do("add", async () => this.env.ACCOUNT.getByName("invoices").add(event.payload.amount));
  }
}

export default class Billing extends WorkerEntrypoint<Env> {
  override async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === "/moved") return Response.redirect("http://billing/there", 302);
    const body = await request.text();
    return Response.json({ who: this.env.WHO, method: request.method, url: request.url, body });
  }

  describe(): unknown {
    return describe();
  }

  async order(item: string): Promise<string> {
    return `ordered ${await this.env.STOCK.take(item)}`;
  }

  fail(): never {
    throw Object.assign(new TypeError("no money"), { code: "E_MONEY" });
  }
}
