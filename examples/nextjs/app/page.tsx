/** The page as the server sends it: with the votes of this moment. */
import { connection } from "next/server";
import { Chat } from "./chat";
import { LivePoll } from "./live-poll";
import { readPoll, SIGNALBOX_URL } from "./signalbox";

export default async function Page() {
  // The votes are those of the request, not of the build.
  await connection();
  return (
    <main>
      <LivePoll url={SIGNALBOX_URL} initial={await readPoll()} />
      <Chat />
    </main>
  );
}
