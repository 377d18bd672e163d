/** An address cannot be listened on. The message is one line for the operator, and names what to change. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  readonly code: string | undefined;
  readonly port: number;

  constructor(message: string, { port }: AddressOptions, cause: unknown) {
    super(message, { cause });
    this.code = (cause as NodeJS.ErrnoException).code;
    this.port = port;
  }
}

export interface AddressOptions {
  readonly host: string;
  readonly port: number;
  /** The options that choose the address. */
  readonly hostOption: string;
  readonly portOption: string;
}

export function toListenError(cause: unknown, address: AddressOptions): ListenError {
  const { host, port } = address;
  const at = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return new ListenError(`cannot listen on ${at}: ${problem(cause, address)}`, address, cause);
}

function problem(cause: unknown, { host, port, hostOption, portOption }: AddressOptions): string {
  switch ((cause as NodeJS.ErrnoException).code) {
    case "EADDRINUSE":
      return `another program uses port ${port}; stop it, or choose another port with ${portOption} (0 selects a free one)`;
    case "EACCES":
      return `this user may not use port ${port}; choose one above 1023 with ${portOption}, or give the process CAP_NET_BIND_SERVICE`;
    case "EADDRNOTAVAIL":
      return `${host} is no address of this machine; see ${hostOption}`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name ${host} cannot be resolved; see ${hostOption}`;
    default:
      return cause instanceof Error ? cause.message : String(cause);
  }
}
