/** Credentials: the forms of well-known services, private keys, and random texts beside a name that says what they are. */
import type { MatchCheck } from "../../engines/text-scan/index.ts";
import type { SECRET_KINDS } from "../../accounts/index.ts";
import type { KnownText } from "./pii.ts";

type SecretKind = (typeof SECRET_KINDS)[number];

const KEYS: readonly string[] = [
  // OpenAI, Anthropic and others with `sk-`
  String.raw`\bsk-[A-Za-z0-9_\-]{20,}`,
  // Amazon
  String.raw`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`,
  // GitHub, GitLab
  String.raw`\bgh[pousr]_[A-Za-z0-9]{30,}`,
  String.raw`\bgithub_pat_[A-Za-z0-9_]{30,}`,
  String.raw`\bgl(?:pat|ptt|dt|rt|cbt)-[A-Za-z0-9_\-]{20,}`,
  // Slack
  String.raw`\bxox[abeoprs]-[A-Za-z0-9\-]{10,}`,
  String.raw`\bxapp-[A-Za-z0-9\-]{20,}`,
  String.raw`hooks\.slack\.com/services/[A-Z0-9]+/[A-Z0-9]+/[A-Za-z0-9]+`,
  // Google
  String.raw`\bAIza[A-Za-z0-9_\-]{35}`,
  String.raw`\bya29\.[A-Za-z0-9_\-]{20,}`,
  String.raw`\bGOCSPX-[A-Za-z0-9_\-]{20,}`,
  // Stripe, Twilio, SendGrid, Mailgun, Shopify
  String.raw`\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}`,
  String.raw`\bwhsec_[A-Za-z0-9+/=]{20,}`,
  String.raw`\bSK[0-9a-f]{32}\b`,
  String.raw`\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}`,
  String.raw`\bkey-[0-9a-f]{32}\b`,
  String.raw`\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b`,
  // npm, PyPI, Hugging Face, Replicate, Groq, Perplexity
  String.raw`\bnpm_[A-Za-z0-9]{30,}`,
  String.raw`\bpypi-[A-Za-z0-9_\-]{30,}`,
  String.raw`\bhf_[A-Za-z0-9]{30,}`,
  String.raw`\br8_[A-Za-z0-9]{30,}`,
  String.raw`\bgsk_[A-Za-z0-9]{30,}`,
  String.raw`\bpplx-[A-Za-z0-9]{30,}`,
  // DigitalOcean, Telegram, Discord's webhooks, Azure, Databricks
  String.raw`\bdo[por]_v1_[0-9a-f]{32,}`,
  String.raw`\b\d{8,10}:[A-Za-z0-9_\-]{35}\b`,
  String.raw`discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_\-]+`,
  String.raw`\bAccountKey=[A-Za-z0-9+/]{40,}={0,2}`,
  String.raw`\bdapi[0-9a-f]{32}\b`,
  // Tokens with claims, tokens of this service, passwords in addresses
  String.raw`\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}`,
  String.raw`\bsbx_[0-9A-Za-z]{46}`,
  String.raw`\b[a-z][a-z0-9+.\-]*://[^\s:/@"']+:[^\s:/@"']+@`,
];

const KEY_NAME = "(?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?";
/** With what it contains, if its end is there; otherwise with its first line. */
const PRIVATE_KEY = String.raw`-----BEGIN ${KEY_NAME}-----(?:(?:[A-Za-z0-9+/=\s\\:,.]|-[A-Za-z])*-----END ${KEY_NAME}-----|[\s\\]{0,4}[A-Za-z0-9+/=]{0,76})`;

const NAMES =
  "passw(?:or)?d|pwd|secret|token|api[_ -]?key|access[_ -]?key|private[_ -]?key|auth[_ -]?key|client[_ -]?secret|credentials?";
const VALUE = /[A-Za-z0-9+/_\-.=~!#$%^&*]{12,}$/;
/** Words and paths have less, random texts of twelve characters more. Bits for each character. */
const MIN_ENTROPY = 3;

const findRandom: MatchCheck = (text) => {
  const value = VALUE.exec(text);
  if (value === null) return null;
  const [found] = value;
  const isMixed = /\d/.test(found) && /[A-Za-z]/.test(found);
  return isMixed && entropyOf(found) >= MIN_ENTROPY ? [value.index, text.length] : null;
};

function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}

export const SECRETS: Readonly<
  Record<SecretKind, { readonly label: string; readonly texts: readonly KnownText[] }>
> = {
  key: { label: "KEY", texts: KEYS.map((source) => ({ source })) },
  private_key: { label: "PRIVATE_KEY", texts: [{ source: PRIVATE_KEY }] },
  entropy: {
    label: "SECRET",
    texts: [
      {
        source:
          String.raw`(?:${NAMES})["'` +
          "`" +
          String.raw`]?\s{0,3}(?:=>?|:=?|\bis\b)\s{0,3}["'` +
          "`" +
          String.raw`]?[A-Za-z0-9+/_\-.=~!#$%^&*]{12,}`,
        ignoresCase: true,
        check: findRandom,
      },
    ],
  },
};
