/** The model, called through the gateway: its token and the provider's key never reach the browser. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  streamText,
  toUIMessageStream,
  type UIMessage,
} from "ai";
import { readPoll, SIGNALBOX_URL } from "../../signalbox";

const { GATEWAY_TOKEN, MODEL = "echo/echo" } = process.env;

const gateway = createOpenAICompatible({
  name: "signalbox",
  baseURL: `${SIGNALBOX_URL}/v1`,
  ...(GATEWAY_TOKEN === undefined ? {} : { apiKey: GATEWAY_TOKEN }),
  // The log and the cost of these calls can be filtered by it.
  headers: { "gw-aig-metadata": JSON.stringify({ page: "lunch" }) },
});

export async function POST(request: Request): Promise<Response> {
  const { messages } = (await request.json()) as { messages: UIMessage[] };
  const { votes } = await readPoll();
  const answer = streamText({
    model: gateway(MODEL),
    instructions: `The votes for lunch are ${JSON.stringify(votes)}. Answer in one sentence.`,
    messages: await convertToModelMessages(messages),
    // The page was closed: the call ends, too.
    abortSignal: request.signal,
  });
  return createUIMessageStreamResponse({ stream: toUIMessageStream({ stream: answer.stream }) });
}
