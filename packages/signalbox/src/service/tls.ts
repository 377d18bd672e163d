/** The certificate of the listeners while the service runs: opened before anything else, and read again when its files change. */
import { ConfigError, type Config } from "../config/index.ts";
import { repeat } from "../core/repeat.ts";
import { CertificateError, ServerCertificate } from "../engines/http-server/index.ts";
import type { RunningServer } from "../database/sqlite/data-folder.ts";
import type { Front } from "../http/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Closer } from "./close-all.ts";

/** Both files are read this often: a few kilobytes. Notices of the file system miss renewals that replace a symbolic link (certbot, Kubernetes). */
const LOOK_MS = 10_000;
/** Certificates of Let's Encrypt are renewed 30 days before their end; what is left at 14 was not renewed. */
const WARN_MS = 14 * 86_400_000;
const WARN_AGAIN_MS = 86_400_000;

export interface Tls {
  /** Null: the listeners speak plain HTTP. */
  readonly certificate: ServerCertificate | null;
  /** Reads the files again, and logs the outcome. */
  reload(): void;
  /** Watches the files. `onChange` is called after each change. */
  start(onChange: () => void): void;
}

/** What commands on this machine need to reach the server. */
export function runningServer({ url, adminUrl }: Front, { certificate }: Tls): RunningServer {
  return {
    url,
    pid: process.pid,
    ...(adminUrl === url ? {} : { adminUrl }),
    ...(certificate === null ? {} : { certificate: certificate.leafPem }),
  };
}

/** Throws `ConfigError` if the files cannot be used. */
export function openTls({ tls }: Config, logger: Logger, now: () => number, closers: Closer[]): Tls {
  if (tls === null) {
    return {
      certificate: null,
      reload: () => logger.info("nothing to reload: there is no TLS certificate"),
      start: () => undefined,
    };
  }
  const certificate = open(tls, now);
  let warnedAt = 0;
  const warn = () => {
    const leftMs = certificate.expiresAt - now();
    if (leftMs > WARN_MS || now() - warnedAt < WARN_AGAIN_MS) return;
    warnedAt = now();
    const facts = { file: tls.cert, expires_at: new Date(certificate.expiresAt).toISOString() };
    if (leftMs <= 0) logger.error(facts, "the TLS certificate has expired: clients refuse it");
    else logger.warn(facts, "the TLS certificate expires soon, and was not renewed");
  };
  const look = (isAsked: boolean) => {
    try {
      const facts = () => ({
        file: tls.cert,
        names: certificate.names,
        expires_at: new Date(certificate.expiresAt).toISOString(),
      });
      if (certificate.reload({ isAsked })) logger.info(facts(), "a new TLS certificate is in use");
      else if (isAsked) logger.info(facts(), "the TLS certificate has not changed");
    } catch (error) {
      if (error instanceof CertificateError)
        logger.error(`${error.message}; the earlier certificate stays in use`);
      else logger.error({ err: error }, "cannot reload the TLS certificate");
    }
    warn();
  };
  return {
    certificate,
    reload: () => look(true),
    start(onChange) {
      certificate.onChange(onChange);
      warn();
      const looking = repeat(
        LOOK_MS,
        () => look(false),
        (error) => logger.error({ err: error }, "cannot check the TLS certificate"),
      );
      closers.push({ close: () => looking.stop() });
    },
  };
}

function open(files: NonNullable<Config["tls"]>, now: () => number): ServerCertificate {
  try {
    return new ServerCertificate(files, now);
  } catch (error) {
    if (error instanceof CertificateError) throw new ConfigError(error.message, { cause: error });
    throw error;
  }
}
