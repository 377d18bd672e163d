/**
 * A Linux control group: all processes that a command starts, also those that leave its process group. It can be stopped as a whole, which the
 * processes do not notice, and its processor time can be limited. Needs root; version 1 and 2 of control groups.
 */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup";
const PERIOD_US = 100_000;

export class ControlGroup {
  readonly #isVersion2 = existsSync(join(ROOT, "cgroup.procs"));
  readonly #folders: { readonly cpu: string; readonly freezer: string };

  constructor(name: string) {
    this.#folders = this.#isVersion2
      ? { cpu: join(ROOT, name), freezer: join(ROOT, name) }
      : { cpu: join(ROOT, "cpu", name), freezer: join(ROOT, "freezer", name) };
    if (this.#isVersion2) writeFileSync(join(ROOT, "cgroup.subtree_control"), "+cpu");
    for (const folder of this.#distinct()) mkdirSync(folder);
  }

  /** The shell command that runs a program in the group. */
  wrap(program: string): string {
    const joins = this.#distinct().map((folder) => `echo $$ > ${folder}/cgroup.procs`);
    return [...joins, `exec ${program}`].join(" && ");
  }

  limitCores(cores: number): void {
    const quota = String(Math.round(cores * PERIOD_US));
    if (this.#isVersion2) this.#write("cpu", "cpu.max", `${quota} ${PERIOD_US}`);
    else {
      this.#write("cpu", "cpu.cfs_period_us", String(PERIOD_US));
      this.#write("cpu", "cpu.cfs_quota_us", quota);
    }
  }

  freeze(): void {
    if (this.#isVersion2) this.#write("freezer", "cgroup.freeze", "1");
    else this.#write("freezer", "freezer.state", "FROZEN");
  }

  thaw(): void {
    if (this.#isVersion2) this.#write("freezer", "cgroup.freeze", "0");
    else this.#write("freezer", "freezer.state", "THAWED");
  }

  /** All processes of the group must have ended. */
  remove(): void {
    for (const folder of this.#distinct()) rmdirSync(folder);
  }

  #write(controller: "cpu" | "freezer", file: string, value: string): void {
    writeFileSync(join(this.#folders[controller], file), value);
  }

  #distinct(): string[] {
    return [...new Set(Object.values(this.#folders))];
  }
}
