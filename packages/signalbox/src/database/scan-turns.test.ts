import { expect, it } from "vitest";
import { ScanTurns } from "./scan-turns.ts";

it("a page never waits for a search, accounts take turns, and the rest of an account is refused", async () => {
  const turns = new ScanTurns();
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const scan = (account: string, kind: "page" | "search", name: string) =>
    turns.run({ account, kind }, () => {
      begun.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  const searches = Array.from({ length: 102 }, (_, i) => scan("a", "search", `a${i}`));
  await expect(scan("a", "search", "one more")).rejects.toMatchObject({ id: "overloaded" });
  const other = scan("b", "search", "b");
  const page = scan("a", "page", "page");
  expect(begun).toEqual(["a0", "a1", "page"]);
  ends.get("page")?.();
  expect(await page).toBe("page");
  ends.get("a0")?.();
  await expect.poll(() => begun.at(-1)).toBe("a2");
  ends.get("a1")?.();
  await expect.poll(() => begun.at(-1)).toBe("b");
  ends.get("b")?.();
  expect(await other).toBe("b");
  for (let ended = 2; ended < 102; ended++) {
    await expect.poll(() => ends.has(`a${ended}`)).toBe(true);
    ends.get(`a${ended}`)?.();
  }
  expect(await Promise.all(searches)).toHaveLength(102);
});
