/** Certificate and key of the listeners: `listener.tls` of the configuration file, with flags and variables in front of it. */
import { resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../core/config-error.ts";

export const tlsKeys = z.strictObject({
  /** PEM file with the certificate of this server and the intermediate ones (`fullchain.pem`). Also `--tls-cert`, `SIGNALBOX_TLS_CERT`. */
  cert: z.string().min(1),
  /** PEM file with its private key, without a passphrase (`privkey.pem`). Also `--tls-key`, `SIGNALBOX_TLS_KEY`. */
  key: z.string().min(1),
  /** The oldest version of TLS that is accepted: `TLSv1.2` or `TLSv1.3`. Default `TLSv1.2`. */
  minVersion: z.enum(["TLSv1.2", "TLSv1.3"]).default("TLSv1.2"),
});

/** Absolute paths. */
export type TlsConfig = z.output<typeof tlsKeys>;

interface TlsSources {
  /** Flag, otherwise variable. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly file: TlsConfig | undefined;
  readonly workingFolder: string;
}

/** Null: the listeners speak plain HTTP. */
export function parseTls({ cert, key, file, workingFolder }: TlsSources): TlsConfig | null {
  const found = { cert: cert ?? file?.cert, key: key ?? file?.key };
  if (found.cert === undefined && found.key === undefined) return null;
  if (found.key === undefined)
    throw new ConfigError(
      "--tls-key (SIGNALBOX_TLS_KEY): expected the private key of --tls-cert, found none",
    );
  if (found.cert === undefined)
    throw new ConfigError(
      "--tls-cert (SIGNALBOX_TLS_CERT): expected the certificate of --tls-key, found none",
    );
  return {
    cert: resolve(workingFolder, found.cert),
    key: resolve(workingFolder, found.key),
    minVersion: file?.minVersion ?? "TLSv1.2",
  };
}
