"""How kernel names are spelled: base names and full names."""

from __future__ import annotations

import pytest

from analyzer.kernel_names import base_name


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
