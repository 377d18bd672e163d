/** Slack's scheme against `@slack/bolt`. */
import { isValidSlackRequest } from "@slack/bolt";
import { slackScheme } from "./index.ts";
import { describeScheme, NOW, SECRET } from "./scheme-contract.ts";

describeScheme({
  title: "slack",
  scheme: slackScheme,
  secret: SECRET,
  vendor: (headers, body) =>
    isValidSlackRequest({
      signingSecret: SECRET,
      body: body.toString(),
      headers: {
        "x-slack-signature": headers["x-slack-signature"] ?? "",
        "x-slack-request-timestamp": Number(headers["x-slack-request-timestamp"]),
      },
      nowMilliseconds: NOW,
    }),
});
