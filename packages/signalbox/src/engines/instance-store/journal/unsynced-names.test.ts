import { expect, it } from "vitest";
import { FolderSync } from "../folder-sync.ts";
import { UnsyncedNames } from "./unsynced-names.ts";

class CountingSync extends FolderSync {
  readonly folders: string[] = [];
  onSync: () => void = () => undefined;

  constructor() {
    super(() => undefined);
  }

  override async sync(path: string): Promise<void> {
    this.folders.push(path);
    this.onSync();
    await Promise.resolve();
  }
}

it("syncs a folder once for all names in it, and again for later names", async () => {
  const sync = new CountingSync();
  const names = new UnsyncedNames(sync);
  for (const path of ["/a/1", "/a/2", "/b/1"]) names.add(path);
  await names.sync("/a/2");
  await names.sync("/a/1");
  await names.sync("/a/old");
  expect(sync.folders).toEqual(["/a"]);
  names.add("/a/3");
  await names.sync("/a/3");
  await names.sync("/b/1");
  expect(sync.folders).toEqual(["/a", "/a", "/b"]);
});

it("does not count a name as durable that was added during the sync", async () => {
  const sync = new CountingSync();
  const names = new UnsyncedNames(sync);
  names.add("/a/1");
  sync.onSync = () => names.add("/a/2");
  await names.sync("/a/1");
  sync.onSync = () => undefined;
  await names.sync("/a/2");
  expect(sync.folders).toEqual(["/a", "/a"]);
});
