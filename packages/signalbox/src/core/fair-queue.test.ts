import { expect, it } from "vitest";
import { FairQueue } from "./fair-queue.ts";

/** Pieces that end when the test says so. */
function pieces(queue: FairQueue) {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (holder: string, name: string) =>
    queue.run(holder, () => {
      begun.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  const end = async (name: string) => {
    ends.get(name)?.();
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  return { begun, run, end };
}

it("holders take turns, however many pieces one of them has", async () => {
  const { begun, run, end } = pieces(new FairQueue(1, 10));
  const work = ["a1", "a2", "a3", "b1", "c1", "b2"].map((name) => run(name[0] ?? "", name));
  for (const name of ["a1", "a2", "b1", "c1", "a3", "b2"]) {
    expect(begun.at(-1)).toBe(name);
    await end(name);
  }
  expect(await Promise.all(work)).toEqual(["a1", "a2", "a3", "b1", "c1", "b2"]);
  // A free place is taken at once.
  void run("a", "a4");
  expect(begun.at(-1)).toBe("a4");
});

it("a holder with too many waiting pieces is refused, and another one is not", async () => {
  const { run, begun, end } = pieces(new FairQueue(2, 1));
  for (const name of ["a1", "a2", "a3"]) void run("a", name);
  expect(begun).toEqual(["a1", "a2"]);
  await expect(run("a", "a4")).rejects.toMatchObject({ id: "overloaded" });
  void run("b", "b1");
  await end("a1");
  await end("a2");
  expect(begun).toEqual(["a1", "a2", "a3", "b1"]);
});

it("a piece that fails gives its place to the next one", async () => {
  const queue = new FairQueue(1, 10);
  const failed = queue.run("a", () => Promise.reject(new Error("no")));
  const next = queue.run("a", () => Promise.resolve("yes"));
  await expect(failed).rejects.toThrow("no");
  expect(await next).toBe("yes");
});
