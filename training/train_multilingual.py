"""Trains a table of word pieces in MiniLM's space for Russian, German and Chinese (see docs/adr/0047).

    train_multilingual.py choose PREFIX          reads PREFIX.jsonl, writes the English texts for the teacher to PREFIX.english.jsonl
    embed-teacher.mjs PREFIX.english.jsonl PREFIX.english.f32
    train_multilingual.py train PREFIX OUTPUT [key=value ...]

PREFIX.jsonl is the output of extract_translations.py. Needs numpy, scipy and the Hugging Face `tokenizers` package.
A text's vector is the sum of its pieces' rows, projected to MiniLM's 384 dimensions. It is trained towards MiniLM's vector of the
English text. English texts without a teacher's vector get that of the table, which learns English first.
"""
import collections, json, os, random, sys, time
import numpy as np
from scipy.sparse import csr_matrix, vstack
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

CONFIG = {
    "vocabulary": 60000,
    "dimension": 256,
    "batch": 1024,
    "temperature": 0.05,
    "rate": 0.04,
    "epochs": 5,
    "seconds": 480,
    "tf_power": 0.6,
    # Frequent pieces count less: (damping / (damping + share of texts)) ** damping_power.
    "damping": 3e-4,
    "damping_power": 0.5,
    # German has six times as many dictionary entries as needed.
    "dictionary_entries": 160000,
    "seed": 1,
}


def translations(prefix, config):
    found = collections.defaultdict(list)
    for line in open(prefix + ".jsonl", encoding="utf8"):
        pair = json.loads(line)
        found[pair["language"]].append((pair["english"], pair["text"], pair["source"]))
    for pairs in found.values():
        random.Random(3).shuffle(pairs)
        entries = [pair for pair in pairs if pair[2] == "freedict"]
        pairs[:] = [pair for pair in pairs if pair[2] != "freedict"] + entries[: config["dictionary_entries"]]
    return found


def choose(prefix):
    """Texts that all languages translate, long messages, and words that MiniLM knows: about 42,000."""
    found = translations(prefix, CONFIG)
    count = collections.Counter(english for pairs in found.values() for english in {pair[0] for pair in pairs})
    words = collections.Counter(word for english in count for word in set(english.lower().split()) if word.isascii() and word.isalpha())
    shared = [english for english, languages in count.items() if languages == len(found) and 3 <= len(english.split()) <= 40]
    long = [english for english in count if 8 <= len(english.split()) <= 60]
    for texts in (shared, long):
        random.Random(7).shuffle(texts)
    frequent = [word for word, _ in words.most_common(16000) if len(word) > 2]
    with open(prefix + ".english.jsonl", "w", encoding="utf8") as file:
        for english in dict.fromkeys(shared[:18000] + long[:10000] + frequent):
            file.write(json.dumps({"ask": english, "text": ""}, ensure_ascii=False) + "\n")


def tokenizer_of(prefix, found, config):
    path = f"{prefix}.vocabulary-{config['vocabulary']}.json"
    if not os.path.exists(path):
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.BertNormalizer(handle_chinese_chars=False, strip_accents=True, lowercase=True)]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=config["vocabulary"], special_tokens=["[PAD]", "[UNK]"], limit_alphabet=6000, show_progress=False
        )
        texts = (text for pairs in found.values() for index, pair in enumerate(pairs) for text in pair[: 1 if index % 3 else 2][::-1])
        tokenizer.train_from_iterator(texts, trainer)
        tokenizer.save(path)
    return Tokenizer.from_file(path)


def is_ideograph(char):
    return "\u3040" <= char <= "\u9fff"


class Bags:
    """Turns texts into rows of piece counts. A piece of ideographs has one row, wherever in a word it stands."""

    def __init__(self, tokenizer, config):
        self.tokenizer, self.config = tokenizer, config
        self.vocabulary = tokenizer.get_vocab()
        self.row = np.arange(len(self.vocabulary))
        for piece, index in self.vocabulary.items():
            if piece[:2] == "##" and is_ideograph(piece[2:3] or "a") and piece[2:] in self.vocabulary:
                self.row[index] = self.vocabulary[piece[2:]]

    def __call__(self, texts):
        indices, values, ends = [], [], [0]
        for start in range(0, len(texts), 10000):
            for encoding in self.tokenizer.encode_batch(texts[start : start + 10000], add_special_tokens=False):
                counts = collections.Counter(self.row[encoding.ids[:512]].tolist() if encoding.ids else ())
                counts.pop(self.vocabulary["[UNK]"], None)
                indices.extend(counts)
                values.extend(count ** self.config["tf_power"] for count in counts.values())
                ends.append(len(indices))
        return csr_matrix((np.array(values, np.float32), np.array(indices, np.int32), np.array(ends)), shape=(len(texts), len(self.row)))


def normalise(vectors):
    return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9)


def fit(table, bags, targets, config, epochs, rate, seconds, report):
    """Adam on the rows in use. Each text must be closer to its own target than to those of the other texts of the batch."""
    rng = np.random.default_rng(config["seed"])
    moment, square = np.zeros_like(table), np.zeros(len(table), np.float32)
    planned, step, started = max(1, int(epochs * bags.shape[0] / config["batch"])), 0, time.time()
    while step < planned:
        for rows in np.array_split(rng.permutation(bags.shape[0]), max(1, bags.shape[0] // config["batch"])):
            progress = max(step / planned, (time.time() - started) / seconds)
            if progress >= 1:
                step = planned
                break
            part = bags[rows]
            used, columns = np.unique(part.indices, return_inverse=True)
            part = csr_matrix((part.data, columns, part.indptr), shape=(len(rows), len(used)))
            sums = part @ table[used]
            length = np.linalg.norm(sums, axis=1, keepdims=True) + 1e-6
            vectors, goal = sums / length, targets[rows]
            similar = vectors @ goal.T / config["temperature"]
            chance = np.exp(similar - similar.max(axis=1, keepdims=True))
            chance /= chance.sum(axis=1, keepdims=True)
            gradient = (chance @ goal - 1.5 * goal) / (config["temperature"] * len(rows))
            gradient = part.T @ ((gradient - vectors * (gradient * vectors).sum(axis=1, keepdims=True)) / length)
            moment[used] = 0.9 * moment[used] + 0.1 * gradient
            square[used] = 0.99 * square[used] + 0.01 * (gradient * gradient).mean(axis=1)
            speed = rate * min(1, (step + 1) / 30) * (1 - progress)
            table[used] -= speed * moment[used] / (np.sqrt(square[used]) + 1e-8)[:, None]
            step += 1
        report(f"step {step}/{planned} after {time.time() - started:.0f}s")


def start_rows(bags, targets):
    """The mean target of the texts that have the piece."""
    count = np.asarray(bags.sum(axis=0)).ravel()
    return np.asarray(bags.T @ targets, np.float32) / (count[:, None] + 3), count


def train(prefix, output, config):
    found = translations(prefix, config)
    bags = Bags(tokenizer_of(prefix, found, config), config)
    texts = [json.loads(line)["ask"] for line in open(prefix + ".english.jsonl", encoding="utf8")]
    teacher = np.fromfile(prefix + ".english.f32", np.float32)
    teacher = teacher[: len(teacher) // 768 * 768].reshape(-1, 2, 384)[: len(texts), 0]
    texts = texts[: len(teacher)]
    # The directions in which the teacher's texts differ.
    mean = teacher.mean(axis=0)
    projection = np.linalg.svd(teacher[:12000] - mean, full_matrices=False)[2][: config["dimension"]].T
    targets = normalise((teacher - mean) @ projection).astype(np.float32)
    english = bags(texts)
    held_out = {language: pairs[:1000] for language, pairs in found.items()}
    for pairs in found.values():
        del pairs[:1000]

    def report(when):
        print(when, " ".join(f"{language} {retrieval(bags, table, pairs):.3f}" for language, pairs in held_out.items()), flush=True)

    table, known = start_rows(english, targets)
    fit(table, english, targets, config, 6, 0.4 * config["rate"], config["seconds"] / 4, report)
    place = {text: index for index, text in enumerate(texts)}
    all_bags, all_targets = [english, english], [targets, targets]
    for pairs in found.values():
        goal = normalise(bags([pair[0] for pair in pairs]) @ table).astype(np.float32)
        for index, pair in enumerate(pairs):
            if pair[0] in place:
                goal[index] = targets[place[pair[0]]]
        all_bags.append(bags([pair[1] for pair in pairs]))
        all_targets.append(goal)
    all_bags, all_targets = vstack(all_bags, format="csr"), np.concatenate(all_targets)
    start, _ = start_rows(all_bags, all_targets)
    table[known == 0] = start[known == 0]
    fit(table, all_bags, all_targets, config, config["epochs"], config["rate"], config["seconds"], report)
    share = np.bincount(all_bags.indices, minlength=len(table)) / all_bags.shape[0]
    table *= ((config["damping"] / (config["damping"] + share)) ** config["damping_power"])[:, None]
    report("damped")
    save(output, table, projection, bags, config)


def retrieval(bags, table, pairs):
    """Share of held-out texts whose own English text is the most similar one, both by the table."""
    texts, english = (normalise(bags([pair[side] for pair in pairs]) @ table) for side in (1, 0))
    return float(((texts @ english.T).argmax(axis=1) == np.arange(len(pairs))).mean())


def save(output, table, projection, bags, config):
    """multilingual.bin: a float scale per row, int8 codes, and the projection to 384 dimensions; multilingual.json describes it."""
    pieces = [piece for piece, index in sorted(bags.vocabulary.items(), key=lambda item: item[1]) if bags.row[index] == index]
    rows = table[[bags.vocabulary[piece] for piece in pieces]]
    place = {piece: row for row, piece in enumerate(pieces)}
    continuing = sorted({place[piece[2:]] for piece, index in bags.vocabulary.items() if bags.row[index] != index})
    scale = np.abs(rows).max(axis=1) / 127
    codes = np.where(scale[:, None] > 0, np.round(rows / np.maximum(scale, 1e-12)[:, None]), 0).astype(np.int8)
    with open(output + "/multilingual.bin", "wb") as file:
        file.write(scale.astype(np.float32).tobytes() + codes.tobytes() + np.ascontiguousarray(projection.T, np.float32).tobytes())
    description = {"dimension": config["dimension"], "tfPower": config["tf_power"], "continuing": continuing, "pieces": pieces}
    json.dump(description, open(output + "/multilingual.json", "w", encoding="utf8"), ensure_ascii=False)


if __name__ == "__main__":
    command, prefix, *arguments = sys.argv[1:]
    if command == "choose":
        choose(prefix)
    else:
        settings = {key: type(CONFIG[key])(value) for key, value in (argument.split("=") for argument in arguments[1:])}
        train(prefix, arguments[0], {**CONFIG, **settings})
