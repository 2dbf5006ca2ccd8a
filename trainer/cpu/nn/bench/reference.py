"""The same model in PyTorch, for tokens/s on the same machine, one thread.

    python3 reference.py [small|medium|large|xl ...]

Prints training and sampling rates for the workloads of BenchmarkTrain and
BenchmarkSample: "episode" is 128 sequences of 117 tokens with 44 targets,
"long" 16 of 300 with all targets, both by processor time (best of several
steps). All sequences have one length, which spares PyTorch its padding. The
head runs on target positions only; the key-value cache is preallocated.
"""
import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
VOCAB, HEAD = 256, 32
SIZES = {"small": (64, 2), "medium": (96, 3), "large": (128, 3), "xl": (192, 4)}


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.dim, self.heads = dim, dim // HEAD
        def p(*shape):
            return torch.nn.Parameter(torch.randn(*shape) * shape[0] ** -0.5)
        self.token, self.previous = p(VOCAB, dim), p(VOCAB, dim)
        self.layers = torch.nn.ParameterList()
        for _ in range(layers):
            self.layers.extend([p(dim, 3 * dim), p(dim, dim), p(dim, 4 * dim), p(4 * dim, dim)])
        self.head = p(dim, VOCAB)
        angle = torch.arange(1024)[:, None] * 10000.0 ** (-torch.arange(16) / 16)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def rotate(self, x, start):  # batch, heads, time, 32: odd heads only
        t = x.shape[2]
        cos, sin = self.cos[start:start + t], self.sin[start:start + t]
        a, b = x[:, 1::2, :, :16], x[:, 1::2, :, 16:]
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
        return torch.stack((x[:, 0::2][:, :turned.shape[1]], turned), 2).flatten(1, 2) if self.heads % 2 == 0 else torch.cat(
            (torch.stack((x[:, 0:-1:2], turned), 2).flatten(1, 2), x[:, -1:]), 1)

    def forward(self, tokens, previous, cache=None, start=0):
        batch, time_ = tokens.shape
        x = self.token[tokens] + self.previous[previous] * (previous >= 0)[..., None]
        for i in range(0, len(self.layers), 4):
            qkv, out, up, down = self.layers[i:i + 4]
            q, k, v = (F.rms_norm(x, (self.dim,)) @ qkv).view(batch, time_, 3, self.heads, HEAD).permute(2, 0, 3, 1, 4)
            q, k = self.rotate(q, start), self.rotate(k, start)
            if cache is not None:
                keys, values = cache[i // 4]
                keys[:, :, start:start + time_], values[:, :, start:start + time_] = k, v
                k, v = keys[:, :, :start + time_], values[:, :, :start + time_]
            a = F.scaled_dot_product_attention(q, k, v, is_causal=time_ > 1)
            x = x + a.transpose(1, 2).reshape(batch, time_, self.dim) @ out
            x = x + F.relu(F.rms_norm(x, (self.dim,)) @ up).square() @ down
        return F.rms_norm(x, (self.dim,))


def shifted(tokens):
    return F.pad(tokens, (1, 0), value=-1)[:, :-1]


def best(fn, count, repeats):
    fn()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        fn()
        times.append(time.process_time() - start)
    return count / min(times)


def train_rate(model, sequences, length, targets):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0, foreach=True)
    tokens = torch.randint(VOCAB, (sequences, length))
    spots = torch.linspace(12, length - 2, targets).long().unique()
    if targets >= length - 1:
        spots = torch.arange(length - 1)

    def step():
        x = model(tokens[:, :-1], shifted(tokens[:, :-1]))[:, spots]
        loss = F.cross_entropy((x @ model.head).flatten(0, 1), tokens[:, spots + 1].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return best(step, sequences * length, 5)


@torch.inference_mode()
def sample_rate(model, sequences, length):
    heads = model.heads
    cache = [(torch.zeros(sequences, heads, length, HEAD), torch.zeros(sequences, heads, length, HEAD)) for _ in range(len(model.layers) // 4)]
    prompt = torch.arange(1, 14).repeat(sequences, 1)

    def run():
        x = model(prompt, shifted(prompt), cache)[:, -1]
        last = prompt[:, -1:]
        for at in range(13, length):
            logp = F.log_softmax(x @ model.head, -1)
            p = logp.exp()
            token = torch.multinomial(p, 1)
            logp.gather(1, token), -(p * logp).sum(-1)
            x, last = model(token, last, cache, at)[:, 0], token

    return best(run, sequences * (length - 13), 3)


print("torch", torch.__version__, torch.backends.cpu.get_cpu_capability())
for name in sys.argv[1:] or SIZES:
    model = Model(*SIZES[name])
    print(f"{name}: train episode {train_rate(model, 128, 117, 44):8.0f}  long {train_rate(model, 16, 300, 299):8.0f}"
          f"  sample 32x117 {sample_rate(model, 32, 117):8.0f}  128x117 {sample_rate(model, 128, 117):8.0f}  128x300 {sample_rate(model, 128, 300):8.0f}  tok/cpu-s", flush=True)
