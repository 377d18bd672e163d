/** Orders: interleaving at awaits, gates, blockConcurrencyWhile, alarms, resets. */
import { DurableObject } from "cloudflare:workers";
import { Notes, show } from "./show";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export class Order extends DurableObject {
  log: unknown[] = [];
  builds = 0;
  #wake = Promise.withResolvers<void>();

  constructor(ctx, env) {
    super(ctx, env);
    ctx.blockConcurrencyWhile(async () => {
      this.builds = ((await ctx.storage.get("builds")) ?? 0) + 1;
      await pause(20);
      await ctx.storage.put("builds", this.builds);
      this.log.push("built");
    });
    this.log.push("constructor");
  }

  read() {
    return this.log;
  }

  /** Waits in the middle, so that others run in between. */
  async waiting(name: string) {
    this.log.push(`${name} begins`);
    await this.#wake.promise;
    this.log.push(`${name} ends`);
  }

  wake() {
    this.log.push("wake");
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  /** Safe without a lock, because no other event is delivered while storage is awaited. */
  async increment() {
    const value = ((await this.ctx.storage.get<number>("value")) ?? 0) + 1;
    await this.ctx.storage.put("value", value);
    return value;
  }

  async list(name: string) {
    this.log.push(`${name} lists`);
    await this.ctx.storage.list();
    this.log.push(`${name} listed`);
  }

  async block(ms: number) {
    this.log.push("block begins");
    const result = await this.ctx.blockConcurrencyWhile(async () => {
      await pause(ms);
      this.log.push("inside");
      return "from inside";
    });
    this.log.push("block ends");
    return result;
  }

  touch(name: string) {
    this.log.push(name);
  }

  async blockAndFail() {
    await this.ctx.blockConcurrencyWhile(async () => {
      await this.ctx.storage.put("before the failure", 1);
      throw new RangeError("the block failed");
    });
  }

  blockFails() {
    return this.ctx.storage.get("before the failure");
  }

  built() {
    return this.builds;
  }

  async abort(reason?: string) {
    await this.ctx.storage.put("aborted", true);
    await this.ctx.storage.sync();
    if (reason === undefined) this.ctx.abort();
    else this.ctx.abort(reason);
  }

  background() {
    this.ctx.waitUntil(
      pause(5).then(() => {
        this.log.push("background");
      }),
    );
    this.ctx.waitUntil(Promise.reject(new Error("nobody sees it")));
    return "answered";
  }

  async alarms() {
    const { storage } = this.ctx;
    const notes = new Notes();
    const at = Date.now() + 3_600_000;
    const since = async () => ((await storage.getAlarm()) ?? at) - at;
    await notes.note("none", () => storage.getAlarm());
    await notes.note("set a date", () => storage.setAlarm(new Date(at)));
    await notes.note("get", since);
    await notes.note("replace", () => storage.setAlarm(at + 5));
    await notes.note("get the second", since);
    await notes.note("a fraction", () => storage.setAlarm(at + 7.9));
    await notes.note("get the fraction", since);
    await notes.note("delete", () => storage.deleteAlarm());
    await notes.note("none again", () => storage.getAlarm());
    for (const value of [0, -5, NaN, Infinity, null, undefined, "soon", new Date(NaN)])
      await notes.note(`set ${String(value)}`, () => storage.setAlarm(value));
    await notes.note("kept nothing of it", async () => storage.deleteAlarm());
    await notes.note("rolled back", () =>
      storage.transactionSync(() => {
        storage.setAlarm(at);
        throw new Error("undo");
      }),
    );
    await notes.note("none after the rollback", () => storage.getAlarm());
    return notes.steps;
  }

  /** Rings at once; the first call fails, and the retry sets another alarm. */
  async ring() {
    await this.ctx.storage.setAlarm(Date.now() - 1000);
  }

  async alarm(info) {
    this.log.push(
      show({ retry: info.isRetry, count: info.retryCount, set: await this.ctx.storage.getAlarm() }),
    );
    if (this.log.filter((entry) => typeof entry === "object").length === 1) {
      await this.ctx.storage.put("written by the failed alarm", 1);
      throw new Error("the first call fails");
    }
    if (info.isRetry) await this.ctx.storage.setAlarm(Date.now() + 1);
    else
      this.log.push(
        show([await this.ctx.storage.get("written by the failed alarm"), await this.ctx.storage.getAlarm()]),
      );
  }
}

/** Without an alarm handler and without fetch. */
export class Plain extends DurableObject {
  async setAlarm() {
    await this.ctx.storage.setAlarm(Date.now() + 1000);
  }
}

/** Calls of one stub are delivered in their order, so that the worker, not the clock, decides what overlaps. */
export async function orderCases(env): Promise<unknown> {
  const notes = new Notes();
  const interleaved = env.Order.getByName("interleaved");
  await notes.note("interleaving", async () => {
    await Promise.all([
      interleaved.waiting("a"),
      interleaved.waiting("b"),
      interleaved.touch("c"),
      interleaved.wake(),
    ]);
    return interleaved.read();
  });
  const counted = env.Order.getByName("counted");
  await notes.note("increments", () => Promise.all(Array.from({ length: 20 }, () => counted.increment())));
  const listed = env.Order.getByName("listed");
  await notes.note("awaited storage", async () => {
    await Promise.all([listed.list("a"), listed.list("b")]);
    return listed.read();
  });
  const blocked = env.Order.getByName("blocked");
  await notes.note("blocked", async () => {
    const results = await Promise.all([blocked.block(20), blocked.touch("b"), blocked.touch("c")]);
    return [results, await blocked.read()];
  });
  const failing = env.Order.getByName("failing");
  await notes.note("builds", () => failing.built());
  await notes.note("a block that fails", () => failing.blockAndFail());
  await notes.note("after it", async () => [
    await env.Order.getByName("failing").built(),
    await env.Order.getByName("failing").blockFails(),
  ]);
  const aborted = env.Order.getByName("aborted");
  await notes.note("abort", () => aborted.abort("enough"));
  await notes.note("abort without a reason", () => env.Order.getByName("aborted").abort());
  await notes.note("builds after abort", () => env.Order.getByName("aborted").built());
  await notes.note("a call beside abort", async () => {
    const stub = env.Order.getByName("beside");
    const results = await Promise.allSettled([stub.waiting("a"), stub.abort("both fail")]);
    return results.map(({ status, reason }) => [status, show(reason)]);
  });
  const background = env.Order.getByName("background");
  await notes.note("background", () => background.background());
  await notes.note("a constructor that fails", () => env.Broken.getByName("x").read());
  await notes.note("a constructor that fails again", () => env.Broken.getByName("x").read());
  return notes.steps;
}

export class Broken extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    throw new RangeError("in the constructor");
  }

  read() {
    return "never";
  }
}
