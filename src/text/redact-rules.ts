/** A kind of secret and how it looks. The text that `keep` matched stays; the rest of the match is the secret. */
export interface SecretRule {
  readonly kind: string;
  /** Every text with such a secret contains at least one of these. Looking for them is much faster than running the pattern. */
  readonly hints: readonly string[];
  /** Every repetition has a limit, and a failed attempt never reads far, so the time grows with the length of the text only. */
  readonly pattern: RegExp;
  /** Decides where the form alone says too little. `before` is the end of the text before the secret, its kept part included. */
  readonly accept?: (secret: string, before: string) => boolean;
}

/** Nothing that could be part of the same word stands before. */
const AT = "(?<![A-Za-z0-9])";
/** And nothing after. */
const END = "(?![A-Za-z0-9])";

type Accept = SecretRule["accept"];
const rule = (kind: string, hints: readonly string[], form: string, accept?: Accept): SecretRule => ({
  kind,
  hints,
  pattern: new RegExp(form, "g"),
  ...(accept && { accept }),
});
const token = (kind: string, hints: readonly string[], form: string, accept?: Accept): SecretRule =>
  rule(kind, hints, `${AT}(?:${form})${END}`, accept);

/** Random text has digits among its letters; class names and words joined by dashes have not. */
const mixed = (secret: string) => /\d/.test(secret) && /[A-Za-z]/.test(secret);

const KEY_MARK = (edge: "BEGIN" | "END") => `-----${edge} (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----`;
/** A text may be cut before the end of the block, so lines of base64 count as one too. */
const PRIVATE_KEY = `${KEY_MARK("BEGIN")}(?:(?:[^-"]|-(?!----)|"\\s{0,9}\\+\\s{0,9}"){0,20000}${KEY_MARK("END")}|(?:\\s|\\\\[nr]){0,9}[A-Za-z0-9+/=\\s\\\\]{40,20000})`;

/**
 * Formats that services publish for their keys, so that leaks can be recognised. The ideas are those of gitleaks' rules;
 * order matters only where one form contains another.
 */
export const SECRET_RULES: readonly SecretRule[] = [
  rule("private-key", ["PRIVATE KEY"], PRIVATE_KEY),
  token("age-secret-key", ["AGE-SECRET-KEY-"], "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
  // Its characters include - and _, so a run of them must have one start only.
  rule("jwt", ["eyJ"], "(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,1000}\\.eyJ[A-Za-z0-9_-]{10,8000}\\.[A-Za-z0-9_-]{10,1000}"),

  token("aws-access-key", ["AKIA", "ASIA", "ABIA", "ACCA", "A3T"], "(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}"),
  rule(
    "aws-secret-key",
    ["ey", "EY"],
    `(?<keep>(?:aws|AWS|[Ss]ecret|SECRET)[A-Za-z_]{0,20}(?:[Kk]ey|KEY)["']?\\s{0,3}[:=]\\s{0,3}["']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])`,
    mixed,
  ),
  token("azure-storage-key", ["AccountKey="], "(?<keep>AccountKey=)[A-Za-z0-9+/]{86}=="),
  rule("azure-access-key", ["AccessKey=", "SharedSecret="], "(?<keep>(?:Shared)?(?:AccessKey|Secret)=)[A-Za-z0-9+/]{20,120}={0,2}", mixed),
  token("azure-client-secret", ["Q~"], "[A-Za-z0-9_~.]{3}\\dQ~[A-Za-z0-9_~.-]{31,34}"),
  rule("azure-sas", ["sig="], "(?<keep>[?&]sig=)[A-Za-z0-9%+/=]{40,120}"),
  token("google-api-key", ["AIza"], "AIza[A-Za-z0-9_-]{35}"),
  token("google-oauth-secret", ["GOCSPX-"], "GOCSPX-[A-Za-z0-9_-]{28}"),
  token("google-oauth-token", ["ya29."], "ya29\\.[A-Za-z0-9_-]{20,500}"),
  token("digitalocean-token", ["_v1_"], "do[opr]_v1_[0-9a-f]{64}"),
  token("heroku-key", ["HRKU-"], "HRKU-[A-Za-z0-9_-]{36,80}"),
  token("cloudflare-origin-key", ["v1.0-"], "v1\\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
  token("fly-token", ["fm2_", "FlyV1"], "fm2_[A-Za-z0-9+/=]{40,1000}|FlyV1 [A-Za-z0-9+/=_,]{40,2000}"),
  token("vault-token", ["hvs.", "hvb.", "hvr."], "hv[sbr]\\.[A-Za-z0-9_-]{24,300}"),
  token("terraform-cloud-token", [".atlasv1."], "[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{60,70}"),
  token("pulumi-token", ["pul-"], "pul-[0-9a-f]{40}"),
  token("doppler-token", ["dp."], "dp\\.(?:pt|st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]{1,40}\\.)?[A-Za-z0-9]{40,44}"),

  token(
    "github-token",
    ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
    "gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}",
  ),
  token(
    "gitlab-token",
    ["glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glagent-", "glsoat-", "gloas-", "glffct-", "glimt-"],
    "gl(?:pat|ptt|dt|rt|cbt|ft|agent|soat|oas|ffct|imt)-[A-Za-z0-9_.=-]{20,300}",
  ),
  token("atlassian-token", ["ATATT", "ATCTT", "ATBB"], "AT(?:ATT|CTT|BB)3?[A-Za-z0-9_=-]{24,300}", mixed),
  token("npm-token", ["npm_"], "npm_[A-Za-z0-9]{36}"),
  token("pypi-token", ["pypi-AgE"], "pypi-AgE[A-Za-z0-9_-]{50,1000}"),
  token("rubygems-key", ["rubygems_"], "rubygems_[0-9a-f]{48}"),
  token("docker-token", ["dckr_"], "dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,60}"),
  token("databricks-token", ["dapi"], "dapi[0-9a-f]{32}(?:-\\d)?"),
  token("planetscale-token", ["pscale_"], "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
  token("netlify-token", ["nfp_"], "nfp_[A-Za-z0-9]{36,60}"),
  token("render-key", ["rnd_"], "rnd_[A-Za-z0-9]{28,60}", mixed),
  token("circleci-token", ["CCIPAT_"], "CCIPAT_[A-Za-z0-9]{10,40}_[0-9a-f]{40}"),
  token("buildkite-token", ["bkua_"], "bkua_[0-9a-f]{40}"),
  token("contentful-token", ["CFPAT-"], "CFPAT-[A-Za-z0-9_-]{43}"),
  token("launchdarkly-key", ["sdk-", "api-"], "(?:sdk|api)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
  token("supabase-key", ["sbp_", "sb_secret_"], "sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,60}"),

  token("anthropic-key", ["sk-ant-"], "sk-ant-[A-Za-z0-9_-]{20,250}"),
  token("openai-key", ["sk-"], "sk-(?:proj|svcacct|admin|None|or-v1)?-?[A-Za-z0-9_-]{16,250}", mixed),
  token("huggingface-token", ["hf_", "api_org_"], "(?:hf|api_org)_[A-Za-z0-9]{34}"),
  token("groq-key", ["gsk_"], "gsk_[A-Za-z0-9]{48,60}"),
  token("replicate-token", ["r8_"], "r8_[A-Za-z0-9]{37}"),
  token("perplexity-key", ["pplx-"], "pplx-[A-Za-z0-9]{48}"),
  token("xai-key", ["xai-"], "xai-[A-Za-z0-9]{70,100}"),

  token("slack-token", ["xox", "xapp-"], "xox[abceoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{10,300}|xapp-\\d-[A-Za-z0-9-]{20,200}", mixed),
  rule("slack-webhook", ["hooks.slack.com"], "(?<keep>hooks\\.slack\\.com/(?:services|workflows|triggers)/)[A-Za-z0-9+/]{20,80}"),
  rule("discord-webhook", ["/api/webhooks/"], "(?<keep>discord(?:app)?\\.com/api/webhooks/)\\d{15,22}/[A-Za-z0-9_-]{50,90}"),
  token("discord-bot-token", ["."], "[MNO][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.[A-Za-z0-9_-]{27,38}"),
  token("telegram-bot-token", [":AA"], "\\d{8,10}:AA[A-Za-z0-9_-]{33}"),
  token("twilio-key", ["SK"], "SK[0-9a-f]{32}"),
  token("sendgrid-key", ["SG."], "SG\\.[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{32,64}"),
  token("mailgun-key", ["key-"], "key-[0-9a-f]{32}"),
  token("mailchimp-key", ["-us"], "[0-9a-f]{32}-us\\d{1,2}"),
  token("brevo-key", ["xkeysib-"], "xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),

  token(
    "stripe-key",
    ["k_test_", "k_live_", "k_prod_", "whsec_"],
    "(?:sk|rk)_(?:test|live|prod)_[A-Za-z0-9]{10,250}|whsec_[A-Za-z0-9+/]{24,80}",
  ),
  token("shopify-token", ["shpat_", "shpca_", "shppa_", "shpss_"], "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
  token("mapbox-token", ["sk.eyJ"], "sk\\.eyJ[A-Za-z0-9_-]{20,200}\\.[A-Za-z0-9_-]{20,60}"),
  token("square-token", ["sq0"], "sq0(?:atp|csp)-[A-Za-z0-9_-]{22,43}"),
  token("linear-key", ["lin_api_"], "lin_api_[A-Za-z0-9]{40}"),
  token("notion-token", ["ntn_", "secret_"], "ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}"),
  token("figma-token", ["figd_"], "figd_[A-Za-z0-9_-]{38,60}"),
  token("airtable-token", ["pat"], "pat[A-Za-z0-9]{14}\\.[0-9a-f]{64}"),
  token("postman-key", ["PMAK-"], "PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
  token("newrelic-key", ["NRAK-"], "NRAK-[A-Z0-9]{27}"),
  token("grafana-token", ["glsa_", "glc_"], "glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,400}"),
  token("sentry-token", ["sntrys_", "sntryu_"], "sntrys_[A-Za-z0-9+/=_]{40,400}|sntryu_[0-9a-f]{64}"),
  token("cairn-key", ["cairn_"], "(?<keep>cairn_(?:local|[0-9a-f]{12})_)[A-Za-z0-9_-]{43}"),
];
