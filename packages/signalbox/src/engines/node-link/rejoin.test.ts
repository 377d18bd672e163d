/** A node that was declared dead joins again under a new identity at its old address, while others still have the old list of members. */
import { expect, it, onTestFinished, vi } from "vitest";
import type { LinkHandler } from "./link.ts";
import { Links, type LinksOptions } from "./links.ts";
import { openLinks, peerOf, REFUSING } from "./links-fixture.ts";

const ECHO: LinkHandler = { ...REFUSING, onCall: (_name, payload) => payload };

function recorder() {
  const events: string[] = [];
  const options: Partial<LinksOptions> = {
    onUp: (node) => events.push(`up ${node}`),
    onDown: (node) => events.push(`down ${node}`),
    onProblem: (node) => events.push(`problem ${node}`),
  };
  return { events, options, count: (event: string) => events.filter((each) => each === event).length };
}

it("a peer that dials the former identity does not disturb the link of the new one", async () => {
  const first = await openLinks("1", ECHO);
  const seenByTwo = recorder();
  const two = await openLinks("2", ECHO, seenByTwo.options);
  first.setPeers([peerOf("2", two, false)]);
  two.setPeers([peerOf("1", first, true)]);
  await expect.poll(() => two.to("1") !== null).toBe(true);
  const { port } = first;
  await first.close();
  const seen = recorder();
  const third = await Links.listen(
    { host: "127.0.0.1", port },
    {
      self: { node: "3", cluster: "test" },
      security: { secret: "a secret of the cluster", isEncrypted: false },
      handler: ECHO,
      ...seen.options,
    },
  );
  onTestFinished(async () => {
    await Promise.all([two.close(), third.close()]);
  });
  third.setPeers([peerOf("2", two, true)]);
  // Node 2 finds another node at the address of node 1, again and again.
  await expect.poll(() => seenByTwo.count("problem 1")).toBeGreaterThan(3);
  expect(third.to("2")).not.toBe(null);
  two.setPeers([peerOf("3", third, false)]);
  await expect.poll(() => two.to("3") !== null).toBe(true);
  expect(String(await two.call("3", "echo", Buffer.from("a")))).toBe("a");
  expect(String(await third.call("2", "echo", Buffer.from("b")))).toBe("b");
  expect([seen.count("up 2"), seen.count("down 2")]).toEqual([1, 0]);
  expect([seenByTwo.count("up 3"), seenByTwo.count("down 3")]).toEqual([1, 0]);
});

it("a link that ends as soon as it is made is dialled with longer and longer pauses", async () => {
  const seen = recorder();
  const one = await openLinks("1", ECHO, { memberWaitMs: 1 });
  const two = await openLinks("2", ECHO, seen.options);
  onTestFinished(async () => {
    await Promise.all([one.close(), two.close()]);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(Math, "random").mockReturnValue(0.99);
  const timers = vi.spyOn(globalThis, "setTimeout");
  // Node 1 does not know node 2 and refuses each link.
  two.setPeers([peerOf("1", one, true)]);
  await expect.poll(() => seen.count("down 1")).toBeGreaterThan(4);
  const pauses = timers.mock.calls.map(([, ms]) => ms).filter((ms) => [49.5, 99, 198, 396].includes(ms ?? 0));
  vi.restoreAllMocks();
  expect(pauses).toEqual([49.5, 99, 198, 396]);
});
