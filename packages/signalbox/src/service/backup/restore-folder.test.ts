import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { DataFolder, RESTORE_MARKER } from "../../database/sqlite/data-folder.ts";
import { RestoreFolder } from "./restore-folder.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-restore-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const FORMER = ["a.db", "b", "c.db"];

function fill(): void {
  for (const name of FORMER.filter((one) => one.endsWith(".db"))) writeFileSync(join(folder, name), name);
  mkdirSync(join(folder, "b"));
}

/** Moves the first entry and then fails as `failure` says. */
function moveOne(failure: () => void): typeof renameSync {
  let count = 0;
  return (from, to) => {
    if (++count > 1) failure();
    renameSync(from, to);
  };
}

async function* chunks(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

it("a restore that was killed while it moved former content away completes the moves, and deletes nothing", async () => {
  fill();
  // The marker and the moved entry as a killed process leaves them.
  let left = "";
  const copyMarker = () => {
    left = readFileSync(join(folder, RESTORE_MARKER), "utf8");
    throw new Error("killed");
  };
  expect(() => RestoreFolder.begin(folder, true, moveOne(copyMarker))).toThrow("killed");
  const target = /replaced-\S+/.exec(left)?.[0] ?? "";
  mkdirSync(join(folder, target));
  renameSync(join(folder, "a.db"), join(folder, target, "a.db"));
  writeFileSync(join(folder, RESTORE_MARKER), left);
  expect(() => DataFolder.open(folder)).toThrow("was interrupted");

  const again = RestoreFolder.begin(folder, false);
  expect(again.replacedTo).toBe(join(folder, target));
  expect(readdirSync(join(folder, target)).toSorted()).toEqual(FORMER);
  await again.write("signalbox.db", chunks("half"));
  again.close();

  const third = RestoreFolder.begin(folder, false);
  expect(basename(third.replacedTo ?? "")).toBe(target);
  expect(readdirSync(folder)).not.toContain("signalbox.db");
  await third.write("signalbox.db", chunks("whole"));
  third.finish();
  third.close();
  expect(readdirSync(join(folder, target)).toSorted()).toEqual(FORMER);
  DataFolder.open(folder).close();
});

it("content that cannot be moved stays where it was, and a server can be started on it", () => {
  fill();
  const busy = () => {
    throw new Error("EBUSY: it is a mount point");
  };
  const begin = () => RestoreFolder.begin(folder, true, moveOne(busy));
  expect(begin).toThrow(DataFolderError);
  expect(begin).toThrow(/cannot move .*EBUSY: it is a mount point; nothing was changed/);
  expect(readdirSync(folder).filter((name) => name !== "lock")).toEqual(FORMER);
  DataFolder.open(folder).close();
});

it("the root of a new volume, with lost+found, is empty", () => {
  mkdirSync(join(folder, "lost+found"));
  const restored = RestoreFolder.begin(folder, false);
  expect(restored.replacedTo).toBeNull();
  restored.finish();
  restored.close();
  expect(readdirSync(folder)).toContain("lost+found");
});
