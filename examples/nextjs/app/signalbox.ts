/** Where Signalbox is. Read by the server of the page only, which passes the address on to the browser. */
import { SignalboxClient } from "@signalbox/client";
import type { PollState } from "../agents";

export const SIGNALBOX_URL = process.env["SIGNALBOX_URL"] ?? "http://127.0.0.1:8787";

const client = new SignalboxClient({ url: SIGNALBOX_URL });

export async function readPoll(): Promise<PollState> {
  return client.callAgent<PollState>({ agent: "Poll", name: "lunch" }, "result");
}
