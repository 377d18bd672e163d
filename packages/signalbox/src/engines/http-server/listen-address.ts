/** The address of a listener, and who can reach it. */
import { isLoopbackAddress } from "../ip-address/index.ts";

export interface BoundAddress {
  /** As configured: an address or a name. */
  readonly host: string;
  /** The address that the name resolved to. */
  readonly address: string;
  readonly port: number;
  /** True if the listener speaks HTTPS. */
  readonly isTls?: boolean;
}

/** True when only programs on this machine can reach the listener. */
export function isLoopback({ address }: BoundAddress): boolean {
  return isLoopbackAddress(address);
}

/** A URL that works on this machine: the unspecified address is replaced by the loopback address of its family. */
export function urlOf({ host, address, port, isTls = false }: BoundAddress): string {
  const scheme = isTls ? "https" : "http";
  if (address === "0.0.0.0") return `${scheme}://127.0.0.1:${port}`;
  if (address === "::") return `${scheme}://[::1]:${port}`;
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
