/** Reads settings, changes them and writes them back, so that a change by another client in between is not undone. */
import { SignalboxApiError } from "./api-error.ts";
import type { Method, RequestOptions, Transport } from "./transport.ts";

/** Each further attempt means that another client has changed the settings in the same instant. */
const MAX_ATTEMPTS = 10;
const CHANGED_MEANWHILE = 412;

/**
 * `toBody` gets the newest settings and returns the body of the write; it may refuse by throwing. It is called again when the settings were
 * changed between the read and the write.
 */
export async function changeSettings<Result>(
  transport: Transport,
  method: Method,
  path: string,
  toBody: (present: Result) => unknown,
  options: RequestOptions = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    const { result, etag } = await transport.request<Result>("GET", path, options);
    const headers: Record<string, string> = etag === undefined ? {} : { "if-match": etag };
    try {
      return await transport.result<Result>(method, path, { ...options, body: toBody(result), headers });
    } catch (error) {
      const isChanged = error instanceof SignalboxApiError && error.status === CHANGED_MEANWHILE;
      if (!isChanged || attempt >= MAX_ATTEMPTS) throw error;
    }
  }
}
