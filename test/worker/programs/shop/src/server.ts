/** A worker that uses another one of its server: entrypoints, objects and workflows. */
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import type { Account, Prices, default as Billing } from "../../billing/src/server.ts";
import { describe } from "./module-state.ts";

interface Env {
  readonly WHO: string;
  readonly BILLING: Service<Billing>;
  readonly PRICES: Service<Prices>;
  readonly ABSENT: Fetcher;
  readonly ACCOUNTS: DurableObjectNamespace<Account>;
  readonly INVOICE: Workflow;
  readonly Account: DurableObjectNamespace<ShopAccount>;
}

/** A class of the same name as one of the other worker. */
class ShopAccount extends DurableObject<Env> {
  add(by: number): { who: string; total: number } {
    const total = (this.ctx.storage.kv.get<number>("total") ?? 0) + by;
    this.ctx.storage.kv.put("total", total);
    return { who: this.env.WHO, total };
  }
}
export { ShopAccount as Account };

/** What the other worker calls. */
export class Stock extends WorkerEntrypoint<Env> {
  async take(item: string): Promise<string> {
    return `${item} of ${this.env.WHO}`;
  }
}

export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    switch (pathname) {
      case "/modules":
        return Response.json([describe(), describe(), await env.BILLING.describe()]);
      case "/prices": {
        const basket = await env.PRICES.open();
        const items: string[] = [];
        const sum = await basket.sum([1, 2, 3], (text: string) => void items.push(text));
        return Response.json({ of: await env.PRICES.of("tea"), sum, items, names: Object.keys(ctx.exports) });
      }
      case "/back":
        return Response.json(await env.BILLING.order("tea"));
      case "/people": {
        const [theirs, own] = [env.ACCOUNTS.getByName("ann"), env.Account.getByName("ann")];
        return Response.json([
          await theirs.add(5),
          await theirs.add(5),
          await own.add(1),
          await theirs.viaShop(),
        ]);
      }
      case "/invoice": {
        const instance = await env.INVOICE.create({ params: { amount: 20 } });
        return Response.json({ id: instance.id });
      }
      case "/invoice/status":
        return Response.json(await (await env.INVOICE.get(new URL(request.url).search.slice(1))).status());
      case "/absent":
        try {
          return await env.ABSENT.fetch(request);
        } catch (error) {
          return new Response(String(error));
        }
      case "/error":
        try {
          return Response.json(await env.BILLING.fail());
        } catch (error) {
          const { message, code } = error as Error & { code?: string };
          return Response.json({ message, code, isType: error instanceof TypeError });
        }
      default:
        return env.BILLING.fetch(request);
    }
  },
} satisfies ExportedHandler<Env>;
