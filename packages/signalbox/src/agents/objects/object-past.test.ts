/** The past of objects: bookmarks, snapshots and histories, and what their restoration keeps. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import { TestClock } from "../../testing/test-clock.ts";
import type { ObjectContext } from "./object-context.ts";
import { openHost, type HostOptions, type TestHost } from "./object-host-fixture.ts";
import type { ObjectSnapshot } from "./object-past.ts";
import { DurableObject } from "./workers-module.ts";

class Part extends DurableObject {
  declare readonly ctx: ObjectContext;

  add(): number {
    const count = Number(this.ctx.storage.kv.get("count") ?? 0) + 1;
    this.ctx.storage.kv.put("count", count);
    return count;
  }
}

class Book extends DurableObject {
  declare readonly ctx: ObjectContext;

  write(text: string): void {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS page (id INTEGER PRIMARY KEY, text TEXT)");
    this.ctx.storage.sql.exec("INSERT INTO page (text) VALUES (?)", text);
    this.ctx.storage.kv.put("last", text);
  }

  read(): unknown {
    const tables = this.ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'page'").toArray();
    const pages = tables.length === 0 ? [] : this.ctx.storage.sql.exec("SELECT text FROM page").toArray();
    return { pages: pages.map(({ text }) => text), last: this.ctx.storage.kv.get("last") };
  }

  who(): unknown {
    return [this.ctx.id.name, String(this.ctx.id)];
  }

  bookmark(): Promise<string> {
    return this.ctx.storage.getCurrentBookmark();
  }

  bookmarkAt(time: number): Promise<string> {
    return this.ctx.storage.getBookmarkForTime(time);
  }

  async bookmarkInTransaction(): Promise<unknown> {
    return this.ctx.storage.transaction(() => this.ctx.storage.getCurrentBookmark());
  }

  plan(bookmark: string): Promise<string> {
    return this.ctx.storage.onNextSessionRestoreBookmark(bookmark);
  }

  async restore(bookmark: string): Promise<void> {
    await this.ctx.storage.onNextSessionRestoreBookmark(bookmark);
    this.ctx.abort("restore");
  }

  snapshot(bookmark?: string): Promise<ObjectSnapshot> {
    return this.ctx.storage.snapshot(bookmark === undefined ? undefined : { bookmark });
  }

  async become(snapshot: ObjectSnapshot): Promise<string> {
    return this.ctx.storage.onNextSessionRestore(snapshot);
  }

  end(): void {
    this.ctx.abort("end");
  }

  alarm(): void {}

  setAlarm(at: number): Promise<void> {
    return this.ctx.storage.setAlarm(at);
  }

  getAlarm(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }

  addToPart(): unknown {
    return (this.ctx.facets.get("part", () => ({ class: Part })) as unknown as Part).add();
  }
}

let folder = "";
let test: TestHost;
const start = async (options: HostOptions = {}) => {
  test = await openHost(folder, { Book }, options);
};
/** Methods as their callers see them. */
type Stub<T> = {
  readonly [Name in keyof T]: T[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};
const book = (name: string) => test.env["Book"]?.getByName(name) as unknown as Stub<Book>;
const ended = (work: unknown) => expect(work).rejects.toThrow(/restore|end/);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-past-"));
});

afterEach(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

describe("a bookmark", () => {
  beforeEach(() => start());

  it("restores tables, keys and alarm when the object starts next, and not before", async () => {
    const it1 = book("a");
    await it1.write("one");
    await it1.setAlarm(Date.now() + 3_600_000);
    const alarm = await it1.getAlarm();
    const first = await it1.bookmark();
    await it1.write("two");
    await it1.setAlarm(Date.now() + 7_200_000);
    await it1.plan(first);
    expect(await it1.read()).toEqual({ pages: ["one", "two"], last: "two" });
    await ended(it1.end());
    expect(await it1.read()).toEqual({ pages: ["one"], last: "one" });
    expect(await it1.getAlarm()).toBe(alarm);
  });

  it("of the content before a restoration undoes it, with what was written after it was planned", async () => {
    const it1 = book("a");
    const empty = await it1.bookmark();
    await it1.write("one");
    const undo = await it1.plan(empty);
    await expect(it1.plan(undo)).rejects.toThrow("did not take place");
    await it1.plan(empty);
    const again = await it1.plan(empty);
    await it1.write("two");
    await ended(it1.end());
    expect(await it1.read()).toEqual({ pages: [], last: undefined });
    await ended(it1.restore(again));
    expect(await it1.read()).toEqual({ pages: ["one", "two"], last: "two" });
  });

  it("is the same while nothing changes, sorts by age, and belongs to its object", async () => {
    const it1 = book("a");
    await it1.write("one");
    const marks = [await it1.bookmark(), await it1.bookmark()];
    expect(new Set(marks.map((mark) => mark.slice(0, 8))).size).toBe(1);
    await it1.write("two");
    marks.push(await it1.bookmark());
    expect(marks.toSorted()).toEqual(marks);
    await expect(book("b").plan(marks[0] ?? "")).rejects.toThrow("belongs to another object");
    await expect(it1.plan("nonsense")).rejects.toThrow("is not a bookmark");
    await expect(it1.plan(undefined as never)).rejects.toThrow("parameter 1 is not of type 'string'");
    await expect(it1.bookmarkInTransaction()).rejects.toThrow("inside of a transaction");
  });

  it("is there after a restart, and so is what was planned", async () => {
    await book("a").write("one");
    const mark = await book("a").bookmark();
    await book("a").write("two");
    await test.close();
    await start();
    await book("a").write("three");
    await book("a").plan(mark);
    await test.close();
    await start();
    expect(await book("a").read()).toEqual({ pages: ["one"], last: "one" });
  });

  it("leaves facets as they are", async () => {
    const mark = await book("a").bookmark();
    expect(await book("a").addToPart()).toBe(1);
    await ended(book("a").restore(mark));
    expect(await book("a").addToPart()).toBe(2);
  });

  it("is gone with its object", async () => {
    await book("a").write("one");
    const mark = await book("a").bookmark();
    const ref = { account: "default", agent: "book", name: String(((await book("a").who()) as string[])[1]) };
    await test.host.destroy(ref);
    await expect(book("a").plan(mark)).rejects.toThrow("does not exist");
  });

  it("of random writes has the content at its time, in any order of restorations", async () => {
    const it1 = book("random");
    const seen: { mark: string; content: unknown }[] = [];
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    for (let i = 0; i < 25; i++) {
      if (random(4) > 0 || seen.length === 0) await it1.write(`${i}:${"x".repeat(random(9000))}`);
      else await ended(it1.restore(seen[random(seen.length)]?.mark ?? ""));
      if (random(2) === 0) seen.push({ mark: await it1.bookmark(), content: await it1.read() });
    }
    for (const { mark, content } of seen.toReversed()) {
      await ended(it1.restore(mark));
      expect(await it1.read()).toEqual(content);
    }
  });
});

describe("a snapshot", () => {
  beforeEach(() => start());

  it("makes another object start with its content, under its own name and without the alarm", async () => {
    await book("source").write("one");
    await book("source").setAlarm(Date.now() + 3_600_000);
    const mark = await book("source").bookmark();
    await book("source").write("two");
    await book("target").write("other");
    const before = await book("target").become(await book("source").snapshot());
    await ended(book("target").end());
    expect(await book("target").read()).toEqual({ pages: ["one", "two"], last: "two" });
    expect(await book("target").getAlarm()).toBeNull();
    expect(await book("target").who()).toEqual([
      "target",
      expect.not.stringMatching(String(((await book("source").who()) as string[])[1])),
    ]);
    await ended(book("target").restore(before));
    expect(await book("target").read()).toEqual({ pages: ["other"], last: "other" });

    await book("target").become(await book("source").snapshot(mark));
    await ended(book("target").end());
    expect(await book("target").read()).toEqual({ pages: ["one"], last: "one" });
    expect(await book("source").read()).toEqual({ pages: ["one", "two"], last: "two" });
  });

  it("is refused if it is none", async () => {
    for (const value of [undefined, "x", {}])
      await expect(book("a").become(value as never)).rejects.toThrow("DurableObjectSnapshot");
    await expect(book("a").become({ object: "book/0", bookmark: "x" })).rejects.toThrow("is not a bookmark");
  });
});

describe("a time", () => {
  it("has a bookmark only with a history", async () => {
    await start();
    await book("a").write("one");
    await expect(book("a").bookmarkAt(Date.now() - 1000)).rejects.toThrow("historyDays");
    await expect(book("a").bookmarkAt("x" as never)).rejects.toThrow("is not of type 'date'");
    await book("a").plan(await book("a").bookmarkAt(Date.now() + 1000));
  });

  it("with a history has the content of the last ten seconds' step before it, for the days that are kept", async () => {
    const clock = new TestClock(Date.parse("2026-03-01T12:00:00Z"));
    await start({ clock, historyDays: 2 });
    const minute = 60_000;
    const pass = (ms: number) => clock.advance(ms, async () => {});
    /** A bookmark of a time that has passed: the step before it has been stored. */
    const markAt = (time: number) =>
      waitUntil(
        () =>
          book("a")
            .bookmarkAt(time)
            .catch(() => ""),
        (mark) => mark !== "",
      );
    const times: number[] = [];
    for (const text of ["one", "two", "three"]) {
      await book("a").write(text);
      await pass(minute);
      times.push(clock.now());
      await pass(minute);
      await markAt(times.at(-1) ?? 0);
    }
    await ended(book("a").restore(await markAt(times[1] ?? 0)));
    expect(await book("a").read()).toEqual({ pages: ["one", "two"], last: "two" });
    await expect(book("a").bookmarkAt((times[0] ?? 0) - 5 * minute)).rejects.toThrow(
      "no history at that time",
    );
    const undone = await markAt(times[2] ?? 0);
    await ended(book("a").restore(undone));
    expect(await book("a").read()).toEqual({ pages: ["one", "two", "three"], last: "three" });

    await pass(3 * 24 * 60 * minute);
    await book("a").write("four");
    await pass(minute);
    await waitUntil(
      () =>
        book("a")
          .bookmarkAt(times[0] ?? 0)
          .then(() => "", String),
      (answer) => answer.includes("no history at that time"),
    );
  });
});
