"""Turns the fetched corpus into training pairs: what a person would ask or say <-> the text that answers it.

Usage: extract_pairs.py CORPUS OUTPUT.jsonl [EXCLUDE.json ...]

One JSON object per line: {"kind": "python" | ... | "prose", "package", "name", "ask", "text"}.
Functions that also occur in an evaluation set given as EXCLUDE are left out, so that its score stays honest.
"""
import ast
import gzip
import hashlib
import json
import os
import re
import sys
import textwrap
import warnings
from collections import Counter

warnings.filterwarnings("ignore")
TEXT_LIMIT = 1600
PER_PACKAGE = 600
PER_NAME = 60
PER_KIND = {"python": 250_000, "prose": 26_000, "note": 4_000}
# How a documented function looks: its language, the lines of a comment before it, and its first line.
SLASH, HASH, STAR = re.compile(r"\s*///?(?!/)"), re.compile(r"\s*#"), re.compile(r"\s*(?:/\*\*|\*)")
DOCUMENTED = {
    ".go": ("go", SLASH, re.compile(r"func .*\{\s*$")),
    ".rs": ("rust", SLASH, re.compile(r"\s*(?:pub(?:\([a-z]+\))? )?(?:const |async |unsafe )*fn ")),
    ".rb": ("ruby", HASH, re.compile(r"\s*def ")),
    ".php": ("php", STAR, re.compile(r"\s*(?:[a-z]+ )*function \w")),
    ".js": ("javascript", STAR, re.compile(r"\s*(?!if|for|while|switch|return)[^/*\s].*(?:function|=>|\)) ?.*\{\s*$")),
}
DOCUMENTED[".mjs"] = DOCUMENTED[".js"]
DOCUMENTED[".ts"] = ("typescript", *DOCUMENTED[".js"][1:])
ATTRIBUTE = re.compile(r"\s*(?:#\[|@)")


def main(corpus, output, excludes):
    excluded = set()
    for path in excludes:
        for doc in json.load(open(path))["docs"]:
            excluded |= shingles(doc["text"])
    seen, names, kinds, dropped = set(), Counter(), Counter(), 0
    with open(output, "w") as out:
        for pair in pairs(corpus):
            identity = hashlib.md5(re.sub(r"\W+", " ", pair["text"])[:150 if pair["kind"] == "prose" else None].encode()).digest()
            key = (pair["kind"], pair["name"])
            if identity in seen or names[key] >= PER_NAME or kinds[pair["kind"]] >= PER_KIND.get(pair["kind"], 10_000):
                continue
            if pair["kind"] == "python":
                own = shingles(pair["text"])
                if own and len(own & excluded) >= 0.3 * len(own):
                    dropped += 1
                    continue
            seen.add(identity)
            if pair["name"]:
                names[key] += 1
            kinds[pair["kind"]] += 1
            out.write(json.dumps(pair) + "\n")
    print(dict(kinds), "left out for the evaluation's sake:", dropped)


def shingles(code):
    """Every run of six code words, without docstring and layout: shared runs mean shared code."""
    words = re.findall(r"\w+", re.sub(r'("""|\'\'\').*?\1', "", code, count=1, flags=re.S))
    return {hash(tuple(words[i : i + 6])) for i in range(max(1, len(words) - 5))}


def pairs(corpus):
    yield from descriptions(os.path.join(corpus, "descriptions.txt"))
    for package in sorted(os.listdir(os.path.join(corpus, "src")), key=lambda name: hashlib.md5(name.encode()).digest()):
        count = 0
        for folder, _, files in sorted(os.walk(os.path.join(corpus, "src", package))):
            for file in sorted(files):
                if count >= PER_PACKAGE:
                    break
                for pair in file_pairs(os.path.join(folder, file)):
                    count += 1
                    yield {**pair, "package": package}


def file_pairs(path):
    if os.path.islink(path) or os.path.getsize(path) > 400_000:
        return
    suffix = os.path.splitext(path)[1]
    base = os.path.basename(path)
    try:
        if base.startswith("changelog") and suffix == ".gz":
            yield from changelog(gzip.open(path, "rt", errors="ignore").read(400_000))
            return
        source = open(path, errors="ignore").read()
    except OSError:
        return
    if suffix == ".py":
        yield from python_functions(source)
    elif suffix in DOCUMENTED and not path.endswith((".min.js", ".d.ts")):
        yield from commented_functions(source, *DOCUMENTED[suffix])
    elif suffix in (".md", ".rst") or base.startswith("README"):
        yield from sections(source)


def python_functions(source):
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = source.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or len(node.body) < 2:
            continue
        doc = ast.get_docstring(node)
        if not doc:
            continue
        docstring = node.body[0]
        code = lines[node.lineno - 1 : docstring.lineno - 1] + lines[docstring.end_lineno : node.end_lineno]
        yield from function("python", node.name, doc, "\n".join(code))


def commented_functions(source, kind, comment, head):
    lines, block = source.splitlines(), []
    for index, line in enumerate(lines):
        if comment.match(line):
            block.append(line)
        elif block and ATTRIBUTE.match(line):
            continue
        elif block:
            if head.match(line):
                name = re.search(r"(?:func(?:tion)?|fn|def)\s+(?:\([^)]*\)\s*)?(?:self\.)?(\w+)|(\w+)\s*[=:(]", line)
                doc = "\n".join(re.sub(r"^\s*(?:///?!?|#+|/\*\*|\*/|\*)[ \t]?|\*/\s*$", "", row) for row in block)
                yield from function(kind, next(filter(None, name.groups()), "") if name else "", doc, body(lines, index, kind))
            block = []


def body(lines, start, kind):
    """From the head to the line that closes the function at its own indentation."""
    indent = re.match(r"\s*", lines[start]).group()
    closing = indent + ("end" if kind == "ruby" else "}")
    for index in range(start + 1, min(len(lines), start + 60)):
        if lines[index].startswith(closing):
            return "\n".join(lines[start : index + 1])
    return "\n".join(lines[start : start + 60])


def function(kind, name, doc, code):
    ask = re.sub(rf"^{re.escape(name)} (?=[a-z])", "", first_sentences(doc) or "") if name else first_sentences(doc)
    code = textwrap.dedent(code).strip()[:TEXT_LIMIT]
    if ask and len(code) > 40:
        yield {"kind": kind, "name": name, "ask": ask, "text": code}


def first_sentences(doc):
    doc = re.split(r"\n\s*\n|\n\s*(?:[:@]\w+|Args|Arguments|Parameters|Returns|Raises|Example|>>>|# )", doc.strip())[0]
    doc = re.sub(r":\w+:`~?([^`]*)`|``?([^`]*)``?", lambda m: m.group(1) or m.group(2) or "", doc)
    doc = re.sub(r"<[^>]+>|https?://\S+", " ", doc)
    doc = re.sub(r"\s+", " ", doc).strip()
    words = re.findall(r"[A-Za-z]{2,}", doc)
    if len(words) < 3 or len(doc) > 500 or re.match(r"(?i)(see |todo|copyright|@|deprecated|eslint|test|internal)", doc):
        return None
    return doc


def descriptions(path):
    """A Debian package's one-line description and the prose that explains it."""
    short, long, inside = None, [], False
    for line in open(path, errors="ignore"):
        if line.startswith("Description-en:"):
            short, long, inside = line[15:].strip(), [], True
        elif inside and line.startswith(" "):
            long.append("" if line.strip() == "." else line.strip())
        else:
            if inside and short and len(" ".join(long)) > 80:
                yield {"kind": "prose", "package": "descriptions", "name": "", "ask": short, "text": " ".join(long)[:TEXT_LIMIT]}
            inside = False


def sections(source):
    """A heading and the prose below it."""
    parts = re.split(r"^(?:#{1,4} +([^\n]+)|([^\n]+)\n[=\-~^]{4,}[ \t]*)$", source, flags=re.M)
    for index in range(1, len(parts) - 2, 3):
        heading = (parts[index] or parts[index + 1] or "").strip("# `*")
        text = re.sub(r"\s+", " ", parts[index + 2]).strip()[:TEXT_LIMIT]
        if len(re.findall(r"[A-Za-z]{2,}", heading)) >= 2 and len(text) > 80:
            yield {"kind": "prose", "name": heading.lower(), "ask": heading[:200], "text": text}


def changelog(source):
    """Single entries of a changelog: the terse prose of people who say what they did. Without an ask: only the PCA sees them."""
    for entry in re.findall(r"^ {2}\* +(.+(?:\n {4,}\S.*)*)", source, flags=re.M)[:40]:
        text = re.sub(r"\s+", " ", entry).strip()[:400]
        if len(text) > 40:
            yield {"kind": "note", "name": "", "ask": "", "text": text}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
