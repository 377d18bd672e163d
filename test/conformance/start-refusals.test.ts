/** Addresses and data folders that cannot be used: one line that names the option, instead of an error of the system. */
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DataFolder } from "../../packages/signalbox/src/database/sqlite/data-folder.ts";
import { startTestServer } from "../support/test-server.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-refused-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("an address that cannot be used", () => {
  it("the line names the port and the option that changes it", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const traffic = startTestServer({ dataDir: folder, port });
    await expect(traffic).rejects.toThrow(
      `cannot listen on 127.0.0.1:${port}: another program uses port ${port}; stop it, or choose another port with --port (0 selects a free one)`,
    );
    const admin = startTestServer({ dataDir: folder, admin: { host: "127.0.0.1", port } });
    await expect(admin).rejects.toThrow(/choose another port with --admin-port/);
    other.close();
  });

  it("a name that does not resolve, and an address of another machine, are named", async () => {
    const named = startTestServer({ dataDir: folder, host: "no-such-host.invalid" });
    await expect(named).rejects.toThrow(/the name no-such-host.invalid cannot be resolved; see --host/);
    const foreign = startTestServer({ dataDir: folder, host: "192.0.2.1" });
    await expect(foreign).rejects.toThrow(/192.0.2.1 is no address of this machine; see --host/);
  });
});

describe("a data folder that cannot be created", () => {
  it("where the file system takes no new folders, as in /proc, it is refused instead of tried for ever", () => {
    // Linux has /proc; a folder that does not exist below the root of macOS is refused with another reason.
    const hasProc = existsSync("/proc/self");
    expect(() => DataFolder.open("/proc/signalbox/data")).toThrow(
      hasProc
        ? "cannot create the data folder /proc/signalbox/data: the file system of /proc takes no new folders"
        : /^cannot create the data folder \/proc/,
    );
  });

  it("below a file, or in place of one, it is refused by name", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    expect(() => DataFolder.open(file)).toThrow(
      `cannot create the data folder ${file}: ${file} is not a folder`,
    );
    expect(() => DataFolder.open(join(file, "data"))).toThrow(/cannot create the data folder/);
  });

  it("folders above it are created, readable by their owner only", () => {
    const opened = DataFolder.open(join(folder, "a/b/c"));
    opened.close();
    expect(statSync(join(folder, "a/b/c")).mode & 0o777).toBe(0o700);
  });
});
