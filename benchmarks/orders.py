"""How long the exact theory of epochs takes, and how it grows with their number."""

import time

import numpy as np

import manypass as mp

PROBLEM = mp.Problem(
    mp.Teacher(alpha=0.6, task="regression", noise=0.5), mp.Adaline(), rate=1.4, decay=0.2
)


def seconds(work):
    work()  # warm up
    start = time.process_time()
    work()
    return time.process_time() - start


def main():
    for order in ("reshuffled", "fixed"):
        problem = PROBLEM.replace(sequence=order)
        for epochs in (5, 20, 60):
            times = 0.6 * np.linspace(0, epochs, 201)
            spent = seconds(lambda p=problem, t=times: mp.solve(p, t, mp.Exact()))
            aim = "   (aim: under 500)" if epochs == 5 else ""
            print(f"{order:<10} {epochs:>3} epochs, 201 times {1e3 * spent:10.1f} ms{aim}")
        times = 0.6 * np.linspace(0, 5, 101)
        both = seconds(lambda p=problem, t=times: mp.solve(p, t, mp.Exact(), two_time=True))
        print(f"{order:<10}   5 epochs, C and G   {1e3 * both:10.1f} ms")
        for name, verb in (("steady state", mp.steady_state), ("critical rate", mp.critical_rate)):
            print(f"{order:<10} {name:<21} {1e3 * seconds(lambda f=verb, p=problem: f(p)):8.1f} ms")
    for share in (0.1, 0.01):
        problem = PROBLEM.replace(sequence="reshuffled", batch_share=share)
        spent = seconds(lambda p=problem: mp.solve(p, 0.6 * np.arange(6.0), mp.Exact()))
        print(f"reshuffled   5 epochs, batch_share = {share:<4} {1e3 * spent:6.1f} ms")


main()
