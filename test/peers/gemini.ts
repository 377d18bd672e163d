/** Google's Gemini API: `generateContent` and `streamGenerateContent` with server-sent events. */
import { type ProviderAnswer, sendEvents, sendJson } from "./provider.ts";

export const GEMINI_KEY = "gemini-provider-key";

const USAGE = {
  promptTokenCount: 9,
  candidatesTokenCount: 5,
  thoughtsTokenCount: 2,
  cachedContentTokenCount: 1,
  totalTokenCount: 16,
};

export const gemini: ProviderAnswer = async (request, response) => {
  const url = new URL(request.url, "http://gemini.invalid");
  if ((request.headers["x-goog-api-key"] ?? url.searchParams.get("key")) !== GEMINI_KEY) {
    sendJson(response, 400, {
      error: { code: 400, message: "API key not valid.", status: "INVALID_ARGUMENT" },
    });
    return;
  }
  const match = /^\/v1beta\/models\/([^/:]+):(generateContent|streamGenerateContent)$/.exec(url.pathname);
  if (match === null) {
    sendJson(response, 404, { error: { code: 404, message: "Not found", status: "NOT_FOUND" } });
    return;
  }
  const part = (text: string, isLast: boolean) => ({
    candidates: [
      {
        content: { role: "model", parts: [{ text }] },
        index: 0,
        ...(isLast ? { finishReason: "STOP" } : {}),
      },
    ],
    modelVersion: match[1],
    ...(isLast ? { usageMetadata: USAGE } : {}),
  });
  if (match[2] === "generateContent") {
    sendJson(response, 200, part("Hello there", true));
    return;
  }
  await sendEvents(
    response,
    [part("Hello", false), part(" there", true)].map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`),
  );
};
