"""How kernel names are spelled: base names and full names."""

from __future__ import annotations

import pytest

from analyzer.kernel_names import base_name, loose_name


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("void at::native::(anonymous namespace)::foo<int, 4>(int*, float)", "at::native::foo"),
        ("void <unnamed>::bar<(int)4>(int)", "bar"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi8EEvPT_", "aiter::add_rmsnorm_quant_kernel"),
        ("_Z3addiPfS_", "add"),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdEEE", "ck_tile::kentry"),
        ("Cijk_Ailk_Bljk_SB_MT64x64.kd", "Cijk_Ailk_Bljk_SB_MT64x64"),
        ("volta_sgemm_128x32_nn", "volta_sgemm_128x32_nn"),
        ("<lambda>", "<lambda>"),
        ("_Z", "_Z"),
        ("", ""),
    ],
)
def test_base_name(name: str, base: str) -> None:
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("nvidia", "kineto"),
    [
        (
            "void k<(int)4, (bool)0, (unsigned long)2>(T1, const int *)",
            "void k<4, false, 2ul>(float*, int const*)",
        ),
        (
            "void k<std::array<char *, (unsigned long)2>>(int, T2)",
            "void k<std::array<char*, 2ul> >(int, F<float>)",
        ),
        (
            "void k<void n::<unnamed>::f<float>(T &, T2)::[lambda(float) (instance 1)]>(T3)",
            "void k<n::(anonymous namespace)::f<float>(T&, float)::{lambda(float)#1}>(int)",
        ),
    ],
)
def test_one_kernel_as_two_demanglers_write_it(nvidia: str, kineto: str) -> None:
    assert loose_name(nvidia) == loose_name(kineto)


def test_kernels_whose_templates_differ_stay_apart() -> None:
    names = [
        "k<true, 4>(int)",
        "k<false, 4>(int)",
        "k<true, 40>(int)",
        "k<true, 4, float>(int)",
        "n::k<true, 4>(int)",
    ]
    assert len({loose_name(name) for name in names}) == len(names)
    assert loose_name("(nothing)") == "(nothing)"
