/** Checks the data folder: permissions, free space, the file system below it. Writes nothing. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fail, type Finding, ok, type Patient, warn } from "./finding.ts";

const GIGABYTE = 1024 ** 3;
const MIN_FREE_BYTES = GIGABYTE / 4;
const LOW_FREE_BYTES = 2 * GIGABYTE;
/** Magic numbers of statfs(2). SQLite's locks and shared memory do not work reliably across machines. */
const NETWORK: Readonly<Record<number, string>> = {
  0x6969: "NFS",
  0x517b: "SMB",
  0xff534d42: "CIFS",
  0xfe534d42: "SMB",
  0x01021997: "9p",
  0x00c36400: "Ceph",
  0x5346414f: "AFS",
  0x65735546: "FUSE",
};
const TMPFS = 0x01021994;
/** A file from the future, beyond small differences: the clock was set back. */
const FUTURE_MS = 60_000;

export function checkDataFolder({ dataDir, config }: Patient): Finding[] {
  const check = "data folder";
  const folder = firstExisting(dataDir);
  if (folder !== dataDir) {
    return isWritable(folder)
      ? [ok(check, `${dataDir} does not exist yet; \`signalbox serve\` creates it`), ...checkSpace(folder)]
      : [
          fail(
            check,
            `${dataDir} does not exist, and ${folder} is not writable`,
            "use --data-dir, or change the owner of the folder",
          ),
        ];
  }
  const stats = statSync(dataDir);
  if (!stats.isDirectory()) return [fail(check, `${dataDir} is not a folder`, "use --data-dir")];
  if (!isAccessible(dataDir, constants.R_OK | constants.X_OK))
    return [
      fail(
        check,
        `this user may not look into ${dataDir}, so most of it was not checked`,
        "run the command as the user of the server: sudo -u signalbox signalbox doctor …",
      ),
    ];
  const findings: Finding[] = [];
  if (!isWritable(dataDir))
    findings.push(fail(check, `${dataDir} is not writable for this user`, `chown -R $(id -un) ${dataDir}`));
  const uid = process.getuid?.();
  if (uid !== undefined && uid !== 0 && stats.uid !== uid)
    findings.push(
      warn(
        check,
        `${dataDir} belongs to another user`,
        `run the command as that user, or chown -R $(id -un) ${dataDir}`,
      ),
    );
  if ((stats.mode & 0o077) !== 0)
    findings.push(
      warn(
        check,
        `other users can look into ${dataDir} (mode ${(stats.mode & 0o777).toString(8)})`,
        `chmod 700 ${dataDir}`,
      ),
    );
  if (
    !existsSync(join(dataDir, "lock")) &&
    readdirSync(dataDir).length > 0 &&
    !existsSync(join(dataDir, "signalbox.db"))
  )
    findings.push(warn(check, `${dataDir} has files, but none of Signalbox`, "check --data-dir"));
  findings.push(...checkFuture(dataDir));
  if (findings.length === 0)
    findings.push(
      ok(
        check,
        `${dataDir}${config?.databaseUrl === undefined ? "" : " (generated secrets and, without a cluster, instances; the rest is in PostgreSQL)"}`,
      ),
    );
  return [...findings, ...checkSpace(dataDir)];
}

function checkSpace(folder: string): Finding[] {
  const { bavail, bsize, type, ffree, files } = statfsSync(folder);
  const free = bavail * bsize;
  const text = `${(free / GIGABYTE).toFixed(1)} GB free on the disk of ${folder}`;
  const findings = [
    free < MIN_FREE_BYTES
      ? fail("disk", text, "free space: writes are refused when the disk is full")
      : free < LOW_FREE_BYTES
        ? warn("disk", text, "free space, or limit gateway.logs in the configuration")
        : ok("disk", text),
  ];
  if (files > 0 && ffree < 1000)
    findings.push(fail("disk", `only ${ffree} inodes are free`, "delete small files"));
  const network = NETWORK[type];
  if (network !== undefined)
    findings.push(
      warn(
        "disk",
        `${folder} is on ${network}: locks and memory maps of SQLite are not reliable there`,
        "use a local disk, or PostgreSQL for several machines",
      ),
    );
  if (type === TMPFS)
    findings.push(
      warn("disk", `${folder} is in memory (tmpfs): a restart of the machine deletes it`, "use a disk"),
    );
  return findings;
}

function checkFuture(dataDir: string): Finding[] {
  const newest = Math.max(
    0,
    ...readdirSync(dataDir).map(
      (name) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    ),
  );
  return newest <= Date.now() + FUTURE_MS
    ? []
    : [
        warn(
          "clock",
          `a file in ${dataDir} is ${Math.round((newest - Date.now()) / 1000)} s in the future: the clock was set back`,
          "synchronize the clock (NTP)",
        ),
      ];
}

function isWritable(path: string): boolean {
  return isAccessible(path, constants.W_OK | constants.X_OK);
}

function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function firstExisting(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}
