/** The module `cloudflare:sockets`, so that programs load that import it for another environment. */

export function connect(): never {
  throw new Error("connect of cloudflare:sockets is not available on Signalbox: use node:net or node:tls");
}
