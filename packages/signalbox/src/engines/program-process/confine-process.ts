/**
 * Inside of the process, before code runs that is not trusted: takes away what Node's permission model leaves. Node 24 has no permission for the network and for signals.
 *
 * Code of a program cannot import the modules of Node that are changed here (its loader refuses them). They are changed because such code shares its globals with Node's own, and may
 * find a way to one of their objects.
 */
import dgram from "node:dgram";
import dns from "node:dns";
import net from "node:net";

/** Members of `process` that act on other processes or on this one, or lead to modules. */
const PROCESS_MEMBERS = [
  "_debugEnd",
  "_debugProcess",
  "_getActiveHandles",
  "_getActiveRequests",
  "_kill",
  "_linkedBinding",
  "abort",
  "binding",
  "chdir",
  "dlopen",
  "execve",
  "exit",
  "getBuiltinModule",
  "kill",
  "loadEnvFile",
  "openStdin",
  "reallyExit",
  "setUncaughtExceptionCaptureCallback",
];
const PROCESS_VALUES = [
  "argv",
  "execArgv",
  "execPath",
  "mainModule",
  "ppid",
  "report",
  "stderr",
  "stdin",
  "stdout",
];

/** The caller has replaced the globals that reach the network: `fetch`, `WebSocket`, `console`. */
export function confineProcess(): void {
  const refuse = (name: string) => () => {
    throw new Error(`${name} is not available to loaded programs`);
  };
  const replace = (target: object, names: readonly string[], label: string) => {
    for (const name of names)
      if (name in target)
        Object.defineProperty(target, name, {
          value: refuse(`${label}.${name}`),
          writable: false,
          configurable: false,
        });
  };
  replace(net.Socket.prototype, ["connect"], "net");
  replace(net.Server.prototype, ["listen"], "net");
  replace(dgram.Socket.prototype, ["addMembership", "bind", "connect", "send"], "dgram");
  const resolvers = (target: object) =>
    Object.keys(target).filter((name) => /^(?:lookup|resolve|reverse)/.test(name));
  replace(dns, resolvers(dns), "dns");
  replace(dns.promises, resolvers(dns.promises), "dns");
  const resolver = dns.Resolver.prototype as object;
  replace(Object.getPrototypeOf(resolver) as object, ["cancel", "setServers"], "dns");
  replace(
    resolver,
    Object.getOwnPropertyNames(resolver).filter((name) => name !== "constructor"),
    "dns",
  );
  replace(process, PROCESS_MEMBERS, "process");
  for (const name of PROCESS_VALUES)
    Object.defineProperty(process, name, { value: undefined, writable: false, configurable: false });
  // Node's HTTP client keeps its connections here.
  Reflect.deleteProperty(globalThis, Symbol.for("undici.globalDispatcher.1"));
  Object.defineProperty(globalThis, "process", {
    value: publicProcess(),
    writable: true,
    configurable: true,
  });
}

/** What programs see as `process`. */
function publicProcess(): object {
  const { arch, platform, version, versions } = process;
  const { nextTick, hrtime, emitWarning, uptime, memoryUsage } = process;
  return {
    arch,
    argv: [],
    cwd: () => "/",
    emitWarning,
    env: {},
    exit: () => {
      throw new Error("process.exit() is not available to loaded programs");
    },
    hrtime,
    memoryUsage,
    nextTick,
    pid: 1,
    platform,
    uptime,
    version,
    versions,
  };
}
