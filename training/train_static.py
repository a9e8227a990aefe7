"""Trains the static table: one vector per token, a text's vector is the normalised weighted sum of its tokens'.

Usage: train_static.py PREFIX OUTPUT_DIR [name=value ...]      (needs numpy and scipy)

Reads PREFIX.tokens.u16, PREFIX.lengths.u32 (tokenize.mjs), PREFIX.words.f32 (embed-words.mjs), PREFIX.teacher.f32
(embed-teacher.mjs; may cover only the first pairs) and PREFIX.jsonl for the kind and package of each pair.

The table starts as the teacher's vectors of single tokens, reduced to fewer dimensions by PCA and weighted by rarity.
It is then trained on two signals at once:
  - contrast: an ask must be nearer to its own text than to the other texts of the batch, and the reverse;
  - distillation, where the teacher has seen the pair: similarities in the batch should be as the teacher sees them, and
    the vector itself should point where the teacher's (reduced) vector points.
Every tenth package is held out and never trained on.
"""
import hashlib
import json
import sys
import time
from functools import cache

import numpy as np
from scipy.sparse import csr_matrix, diags, vstack

CONFIG = dict(
    dimension=256,
    epochs=4,
    batch=1024,
    rate=0.003,
    temperature=0.05,  # how sharply the right text must stand out
    teacher_temperature=0.05,
    distil=0.5,  # how much of the goal is the teacher's opinion, where it has one
    anchor=0.3,  # weight of pointing where the teacher's own vector points
    half_life=64.0,  # a token at this position counts half as much as the first
    tf_power=0.5,  # a token seen n times counts n to this power
    language=0.3,  # share of asks that name the language
    name=0.2,  # share of asks that are only the function's name
    limit=0,  # use only so many pairs (0: all)
    seconds=0,  # stop after so long (0: after all epochs)
    seed=1,
)
LANGUAGES = {"python": "python", "go": "golang", "rust": "rust", "ruby": "ruby", "php": "php", "javascript": "javascript",
             "typescript": "typescript"}


def make_bags(tokens, lengths, vocabulary, config):
    """Texts as rows of a sparse matrix. Early tokens count more (names and summaries come first), repetition less than its number."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    place = (1.0 / (1.0 + position / config["half_life"])).astype(np.float32)
    bags = csr_matrix((place, (row, tokens.astype(np.int32))), shape=(len(lengths), vocabulary))
    bags.sum_duplicates()
    bags.data **= config["tf_power"]
    return bags


def load(prefix, config):
    lengths = np.fromfile(prefix + ".lengths.u32", np.uint32).astype(np.int64)
    count = len(lengths) // 3
    if config["limit"]:
        count = min(count, config["limit"])
    tokens = np.fromfile(prefix + ".tokens.u16", np.uint16)[: lengths[: 3 * count].sum()]
    lengths = lengths[: 3 * count]
    side = np.repeat(np.arange(3 * count) % 3, lengths)
    sides = [make_bags(tokens[side == s], lengths[s::3], len(vocabulary_of(prefix)), config) for s in range(3)]
    kinds, held_out = [], np.zeros(count, bool)
    with open(prefix + ".jsonl") as file:
        for row, line in zip(range(count), file):
            pair = json.loads(line)
            kinds.append(pair["kind"])
            where = pair["package"] if pair["package"] != "descriptions" else pair["ask"]
            held_out[row] = hashlib.md5(where.encode()).digest()[0] < 26
    return *sides, np.array(kinds), held_out


def normalise(x):
    norm = np.linalg.norm(x, axis=1, keepdims=True) + 1e-9
    return x / norm, norm


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def start_table(prefix, teacher, config):
    words = np.fromfile(prefix + ".words.f32", np.float32).reshape(-1, 384)
    # The directions in which the teacher's texts differ; what all of them share says nothing.
    sample = teacher[np.linalg.norm(teacher, axis=1) > 0.5][:40000] if len(teacher) > 2000 else words
    mean = sample.mean(axis=0)
    _, _, components = np.linalg.svd(sample - mean, full_matrices=False)
    projection = components[: config["dimension"]].T
    return (words - words.mean(axis=0)) @ projection, lambda t: (t - mean) @ projection


def train(prefix, data, config, report):
    rng = np.random.default_rng(config["seed"])
    asks, texts, names, kinds, held_out = data
    count = len(kinds)
    try:
        teacher = np.fromfile(prefix + ".teacher.f32", np.float32)
        teacher = teacher[: len(teacher) // 768 * 768].reshape(-1, 2, 384)[:count]
    except FileNotFoundError:
        teacher = np.zeros((0, 2, 384), np.float32)
    is_taught = np.zeros(count, bool)
    is_taught[: len(teacher)] = np.linalg.norm(teacher[:, 0], axis=1) > 0.5
    table, project = start_table(prefix, teacher.reshape(-1, 384), config)
    frequency = np.bincount(texts.indices, minlength=len(table)) + np.bincount(asks.indices, minlength=len(table))
    table *= (3e-4 / (3e-4 + frequency / (2 * count)))[:, None] ** 0.5
    table[0] = 0
    table = np.ascontiguousarray(table, np.float32)
    language_of = language_bags(kinds, vocabulary_of(prefix))
    moment, square = np.zeros_like(table), np.zeros(len(table), np.float32)

    usable = np.flatnonzero(~held_out & (kinds != "note"))
    steps_planned = int(config["epochs"] * len(usable) / config["batch"])
    started, step = time.time(), 0
    report(table, "start")
    while step < steps_planned:
        for rows in np.array_split(rng.permutation(usable), max(1, len(usable) // config["batch"])):
            progress = step / steps_planned
            if config["seconds"]:
                progress = max(progress, (time.time() - started) / config["seconds"])
            if progress >= 1:
                step = steps_planned
                break
            rate = config["rate"] * min(1, (step + 1) / 50) * (1 - progress)
            bags = vstack([ask_bags(asks, names, language_of, rows, config, rng), texts[rows]], format="csr")
            used, bags.indices = np.unique(bags.indices, return_inverse=True)
            bags = csr_matrix((bags.data, bags.indices, bags.indptr), shape=(2 * len(rows), len(used)))
            z, norm = normalise(bags @ table[used])
            taught = np.flatnonzero(is_taught[rows])
            grad_z, loss = loss_gradient(z, taught, teacher[rows[taught]], project, config)
            grad_sums = (grad_z - z * (grad_z * z).sum(axis=1, keepdims=True)) / norm
            update(table, moment, square, used, bags.T @ grad_sums, rate)
            step += 1
            if step % 50 == 0:
                print(f"step {step}/{steps_planned} loss {loss:.3f} {time.time() - started:.0f}s", flush=True)
            if step % 400 == 0:
                report(table, f"step {step}")
    report(table, "end")


def loss_gradient(z, taught, believed, project, config):
    """The gradient on the unit vectors z (asks, then texts), and the loss of the asks against the texts."""
    count = len(z) // 2
    a, t = z[:count], z[count:]
    similar = a @ t.T / config["temperature"]
    forward, reverse = softmax(similar), softmax(similar.T)
    goal_forward, goal_reverse = np.eye(count, dtype=np.float32), np.eye(count, dtype=np.float32)
    if len(taught):
        opinion = believed[:, 0] @ believed[:, 1].T / config["teacher_temperature"]
        among = np.ix_(taught, taught)
        goal_forward[among] = (1 - config["distil"]) * goal_forward[among] + config["distil"] * softmax(opinion)
        goal_reverse[among] = (1 - config["distil"]) * goal_reverse[among] + config["distil"] * softmax(opinion.T)
    grad_similar = ((forward - goal_forward) + (reverse - goal_reverse).T) / (2 * config["temperature"] * count)
    grad = np.concatenate((grad_similar @ t, grad_similar.T @ a))
    if len(taught):
        directions, _ = normalise(project(np.concatenate((believed[:, 0], believed[:, 1]))))
        grad[np.concatenate((taught, count + taught))] -= config["anchor"] * directions / (count * config["temperature"])
    return grad, -np.log(np.diag(forward) + 1e-9).mean()


def ask_bags(asks, names, language_of, rows, config, rng):
    """The asks of these pairs, some as bare names, some with the language said, as people type them."""
    named = (np.diff(names.indptr)[rows] > 1) & (rng.random(len(rows)) < config["name"])
    told = (rng.random(len(rows)) < config["language"]).astype(np.float32)
    keep = diags((~named).astype(np.float32)) @ asks[rows] + diags(named.astype(np.float32)) @ names[rows]
    bags = (keep + diags(told) @ language_of[rows]).tocsr()
    bags.eliminate_zeros()
    return bags


def language_bags(kinds, vocabulary):
    rows = [(row, vocabulary[LANGUAGES[kind]]) for row, kind in enumerate(kinds) if LANGUAGES.get(kind) in vocabulary]
    row, column = np.array(rows).T
    return csr_matrix((np.ones(len(rows), np.float32), (row, column)), shape=(len(kinds), len(vocabulary)))


def update(table, moment, square, rows, grad, rate):
    """Adam on the rows in use, with one second moment per row."""
    moment[rows] = 0.9 * moment[rows] + 0.1 * grad
    square[rows] = 0.99 * square[rows] + 0.01 * (grad * grad).mean(axis=1)
    table[rows] -= rate * moment[rows] / (np.sqrt(square[rows]) + 1e-8)[:, None]
    table[0] = 0


@cache
def vocabulary_of(prefix):
    return json.load(open(prefix + ".vocab.json"))


def retrieval(asks, texts, table, rows):
    """Mean reciprocal rank of each ask's own text among all of these."""
    a, _ = normalise(asks[rows] @ table)
    t, _ = normalise(texts[rows] @ table)
    similar = a @ t.T
    return (1 / (1 + (similar > np.diag(similar)[:, None]).sum(axis=1))).mean()


def main(prefix, output, arguments):
    config = {**CONFIG, **{key: type(CONFIG[key])(value) for key, value in (argument.split("=") for argument in arguments)}}
    print(config)
    data = load(prefix, config)
    asks, texts, _, kinds, held_out = data
    rng = np.random.default_rng(0)
    code = rng.permutation(np.flatnonzero(held_out & (kinds == "python")))[:2000]
    prose = rng.permutation(np.flatnonzero(held_out & (kinds == "prose")))[:2000]

    def report(table, when):
        print(f"{when}: held-out python MRR {retrieval(asks, texts, table, code):.4f}, prose MRR {retrieval(asks, texts, table, prose):.4f}", flush=True)
        save(table, output, prefix, config)

    train(prefix, data, config, report)


def save(table, output, prefix, config):
    """static.bin: one float scale per token, then the int8 codes (value = scale * code); static.json describes it."""
    scale = np.abs(table).max(axis=1) / 127
    codes = np.where(scale[:, None] > 0, np.round(table / np.maximum(scale, 1e-12)[:, None]), 0).astype(np.int8)
    with open(output + "/static.bin", "wb") as file:
        file.write(scale.astype(np.float32).tobytes() + codes.tobytes())
    description = {"dimension": config["dimension"], "halfLife": config["half_life"], "tfPower": config["tf_power"]}
    json.dump({**description, "words": json.load(open(prefix + ".words.json"))}, open(output + "/static.json", "w"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
