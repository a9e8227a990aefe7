/** Secrets of every kind, generated for each seed, so that the repository contains none. */
export interface Planted {
  readonly kind: string;
  /** As it would stand in a note. */
  readonly text: string;
  /** What must be nowhere afterwards. */
  readonly secret: string;
}

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789";
const UPPER = LOWER.toUpperCase();
const HEX = "0123456789abcdef";
const ALNUM = LOWER + UPPER + DIGITS;

export function plantedSecrets(seed: number): Planted[] {
  const from = (alphabet: string, length: number) =>
    Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join("");
  const random = numbers(seed);
  // Random letters and digits, never without either.
  const mixed = (length: number) => `a1B2c3${from(ALNUM, length - 6)}`;
  const hex = (length: number) => `1a2b3c4d${from(HEX, length - 8)}`;
  const bare = (kind: string, secret: string): Planted => ({ kind, secret, text: `the key is ${secret}, do not lose it` });
  const within = (kind: string, before: string, secret: string, after = ""): Planted => ({ kind, secret, text: before + secret + after });
  const basic = (text: string) => Buffer.from(text).toString("base64");
  const body = mixed(64);
  const lines = [mixed(64), mixed(64), mixed(40)];
  return [
    within("private-key", "-----BEGIN RSA PRIVATE " + "KEY-----\n", lines.join("\n"), "\n-----END RSA PRIVATE " + "KEY-----"),
    within("private-key", "cut off: -----BEGIN OPENSSH PRIVATE " + "KEY-----\n", `${body}\n${mixed(64)}`),
    within("private-key", '"-----BEGIN PRIVATE ' + "KEY-----\\n", `${body}\\n${mixed(30)}`, "\\n-----END PRIVATE " + 'KEY-----\\n"'),
    bare("age-secret-key", `AGE-SECRET-${"KEY"}-1${from(UPPER + DIGITS, 58)}`),
    bare("jwt", `eyJ${mixed(33)}.eyJ${mixed(80)}.${mixed(43)}`),
    bare("aws-access-key", `AKIA${from("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)}`),
    within("aws-secret-key", "aws_secret_access_key = ", mixed(40)),
    within("azure-storage-key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", `${mixed(86)}==`, ";EndpointSuffix=core"),
    bare("azure-client-secret", `${from(ALNUM, 3)}8Q~${mixed(34)}`),
    within("azure-sas", "https://x.blob.core.windows.net/c/b?sv=2022&sig=", `${mixed(43)}%3D`, "&se=2030"),
    bare("google-api-key", `AIza${mixed(35)}`),
    bare("google-oauth-secret", `GOCSPX-${mixed(28)}`),
    bare("google-oauth-token", `ya29.${mixed(60)}`),
    bare("digitalocean-token", `dop_v1_${hex(64)}`),
    bare("heroku-key", `HRKU-${mixed(60)}`),
    bare("cloudflare-origin-key", `v1.0-${hex(24)}-${hex(146)}`),
    bare("fly-token", `fm2_${mixed(80)}`),
    bare("vault-token", `hvs.${mixed(90)}`),
    bare("terraform-cloud-token", `${mixed(14)}.atlasv1.${mixed(67)}`),
    bare("pulumi-token", `pul-${hex(40)}`),
    bare("doppler-token", `dp.pt.${mixed(43)}`),
    bare("github-token", `ghp_${mixed(36)}`),
    bare("github-token", `github_pat_${mixed(22)}_${mixed(59)}`),
    bare("gitlab-token", `glpat-${mixed(20)}`),
    bare("atlassian-token", `ATATT3${mixed(180)}`),
    bare("npm-token", `npm_${mixed(36)}`),
    bare("pypi-token", `pypi-AgEIcHlwaS5vcmc${mixed(80)}`),
    bare("rubygems-key", `rubygems_${hex(48)}`),
    bare("docker-token", `dckr_pat_${mixed(27)}`),
    bare("databricks-token", `dapi${hex(32)}`),
    bare("planetscale-token", `pscale_tkn_${mixed(43)}`),
    bare("supabase-key", `sbp_${hex(40)}`),
    bare("anthropic-key", `sk-ant-api03-${mixed(93)}`),
    bare("openai-key", `sk-proj-${mixed(120)}`),
    bare("openai-key", `sk-${mixed(48)}`),
    bare("huggingface-token", `hf_${mixed(34)}`),
    bare("groq-key", `gsk_${mixed(52)}`),
    bare("replicate-token", `r8_${mixed(37)}`),
    bare("perplexity-key", `pplx-${mixed(48)}`),
    bare("xai-key", `xai-${mixed(80)}`),
    bare("slack-token", `xoxb-${from(DIGITS, 12)}-${from(DIGITS, 12)}-${mixed(24)}`),
    within("slack-webhook", "https://hooks.slack.com/services/", `T${from(UPPER, 8)}/B${from(UPPER, 8)}/${mixed(24)}`),
    within("discord-webhook", "https://discord.com/api/webhooks/", `1${from(DIGITS, 17)}/${mixed(68)}`),
    bare("discord-bot-token", `M${mixed(23)}.${mixed(6)}.${mixed(38)}`),
    bare("telegram-bot-token", `1${from(DIGITS, 8)}:AA${mixed(33)}`),
    bare("twilio-key", `SK${hex(32)}`),
    bare("sendgrid-key", `SG.${mixed(22)}.${mixed(43)}`),
    bare("mailgun-key", `key-${hex(32)}`),
    bare("mailchimp-key", `${hex(32)}-us12`),
    bare("brevo-key", `xkeysib-${hex(64)}-${mixed(16)}`),
    bare("stripe-key", `sk_live_${mixed(24)}`),
    bare("shopify-token", `shpat_${hex(32)}`),
    bare("square-token", `sq0atp-${mixed(22)}`),
    bare("linear-key", `lin_api_${mixed(40)}`),
    bare("notion-token", `ntn_${mixed(46)}`),
    bare("figma-token", `figd_${mixed(40)}`),
    bare("airtable-token", `pat${mixed(14)}.${hex(64)}`),
    bare("postman-key", `PMAK-${hex(24)}-${hex(34)}`),
    bare("newrelic-key", `NRAK-${from(UPPER + DIGITS, 27)}`),
    bare("grafana-token", `glsa_${mixed(32)}_${hex(8)}`),
    bare("sentry-token", `sntryu_${hex(64)}`),
    within("cairn-key", `cairn_${hex(12)}_`, mixed(43)),
    within("url-password", "postgres://app:", `s${from(ALNUM, 9)}9`, "@db.internal:5432/app"),
    within("url-password", "REDIS_URL=redis://:", mixed(12), "@cache:6379/0"),
    within("authorization", "curl -H 'Authorization: Bearer ", mixed(40), "'"),
    within("authorization", '{"authorization": "Basic ', `${mixed(30)}==`, '"}'),
    within("password", "DB_PASSWORD=", `hunter${from(DIGITS, 3)}x`),
    within("password", 'password: "', `tr0ub4dor&${from(DIGITS, 2)}`, '"'),
    within("password", "Server=db;Uid=app;Pwd=", `Sw0rd${from(ALNUM, 6)}`, ";Database=x"),
    within("secret", 'const clientSecret = "', mixed(32), '";'),
    within("secret", "SESSION_TOKEN: ", mixed(24)),
    within("secret", '{\\"api_key\\":\\"', mixed(32), '\\"}'),

    within("azure-access-key", "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=app;SharedAccessKey=", `${mixed(43)}=`),
    bare("netlify-token", `nfp_${mixed(40)}`),
    bare("render-key", `rnd_${mixed(32)}`),
    bare("circleci-token", `CCIPAT_${mixed(22)}_${hex(40)}`),
    bare("buildkite-token", `bkua_${hex(40)}`),
    bare("contentful-token", `CFPAT-${mixed(43)}`),
    bare("launchdarkly-key", `sdk-${hex(8)}-${hex(12).slice(8)}-${hex(12).slice(8)}-${hex(12).slice(8)}-${hex(12)}`),
    bare("mapbox-token", `sk.eyJ${mixed(60)}.${mixed(22)}`),
    within("url-password", "postgres://app:", `p@ss@${from(ALNUM, 6)}`, "@db.internal:5432/app"),
    within("password", "jdbc:mysql://db/app?user=app&password=", `plain${from(LOWER, 6)}`, "&useSSL=true"),
    within("url-token", "git clone https://", mixed(40), "@git.internal/app.git"),
    within("basic-auth", "//registry.internal/:_auth=", basic(`app:${from(LOWER, 9)}`)),
    within("basic-auth", '{ "auths": { "registry.internal": { "auth": "', basic(`ci:${from(LOWER, 9)}`), '" } } }'),
    within("authorization", "Authorization: Basic ", basic(`app:${from(LOWER, 8)}`)),
    within("password", 'db_password = "', `two words ${from(DIGITS, 3)}`, '"'),
    within("password", "password: '", `${from(LOWER, 5)} ${from(LOWER, 6)} ${from(LOWER, 5)} ${from(LOWER, 7)}`, "'"),
    within("command-password", "curl -s -u admin:", `plain${from(LOWER, 6)}`, " https://api.internal/v1"),
    within("command-password", 'curl --user "admin:', `with space ${from(LOWER, 6)}`, '" https://api.internal'),
    within("command-password", "mysql -h db -u root -p", `plain${from(LOWER, 6)}`, " app < dump.sql"),
    within("command-password", "sshpass -p ", `plain${from(LOWER, 6)}`, " ssh -p 22 root@10.0.0.1"),
    within("command-password", "redis-cli -h cache -a ", `plain${from(LOWER, 6)}`, " ping"),
    within("command-password", "docker login -u ci -p ", `plain${from(LOWER, 6)}`, " registry.internal"),
    within("command-password", "ldapsearch -x -D cn=admin -w ", `plain${from(LOWER, 6)}`, " -b dc=x"),
    within("command-password", "sqlcmd -S db -U sa -P '", `with space ${from(LOWER, 6)}`, "' -Q 'select 1'"),
    within("command-password", "wget --http-password=", `hunter${from(DIGITS, 3)}x`, " https://files.internal/a"),
    within("command-password", "createuser --password ", `hunter${from(DIGITS, 3)}x`, " app"),
    within("command-password", "deploy --token ", mixed(24), " --force"),
    within("command-password", "PGPASSWORD=", `plain${from(LOWER, 6)}`, " psql -h db -p 5432 app"),
    within("command-password", "openssl rsa -passin pass:", `plain${from(LOWER, 6)}`, " -in key.pem"),
    within("netrc-password", "machine api.internal login ci password ", `plain${from(LOWER, 6)}`),
    within("netrc-password", "machine api.internal\n  login ci\n  password ", `plain${from(LOWER, 6)}`, "\n"),
    within("pgpass-password", "db.internal:5432:app:owner:", `plain${from(LOWER, 6)}`),
    within("cookie", "Set-Cookie: connect.sid=", `s%3A${mixed(32)}.${mixed(20)}`, "; Path=/; HttpOnly"),
    within("xml-password", "<server><id>x</id><password>", `plain ${from(LOWER, 6)}`, "</password></server>"),
    within("kubernetes-secret", "apiVersion: v1\nkind: Secret\ndata:\n  value: ", basic(from(LOWER, 12))),
  ];
}

/** A small generator of numbers that can be repeated (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
