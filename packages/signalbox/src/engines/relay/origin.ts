/** Where an upstream connection goes. Connections are pooled by `key`. */
export interface Origin {
  readonly key: string;
  readonly isTls: boolean;
  readonly hostname: string;
  readonly port: number;
  /** Value of the `host` header. */
  readonly hostHeader: string;
  /**
   * False for addresses that did not come from the operator: the name is resolved and a loopback, private or link-local result is
   * refused, so that nobody reaches the inside of the network through the gateway.
   */
  readonly mayBePrivate: boolean;
}

export function toOrigin(url: URL, mayBePrivate: boolean): Origin {
  const isTls = url.protocol === "https:";
  return {
    key: `${url.origin}${mayBePrivate ? "" : " public"}`,
    isTls,
    hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
    hostHeader: url.host,
    mayBePrivate,
  };
}
