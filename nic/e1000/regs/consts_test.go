package regs

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strings"
	"testing"
)

// constants evaluates the package-level constants of the named files, which
// import nothing.
func constants(t *testing.T, files ...string) map[string]uint32 {
	t.Helper()
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Imports = nil
		var decls []ast.Decl
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				decls = append(decls, d)
			}
		}
		f.Decls = decls
		parsed = append(parsed, f)
	}
	// Constants of a declared type (units, directions) fail to resolve and are
	// not wanted.
	conf := types.Config{Importer: importer.Default(), Error: func(error) {}}
	pkg, _ := conf.Check("regs", fset, parsed, nil)
	out := map[string]uint32{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		if v, exact := constant.Uint64Val(constant.ToInt(c.Val())); exact {
			out[name] = uint32(v)
		}
	}
	return out
}

// camel turns a register name into the prefix of its bit constants.
func camel(name string) string {
	if name == "CTRLEXT" {
		return "CtrlExt"
	}
	return name[:1] + strings.ToLower(name[1:])
}

var notAlnum = regexp.MustCompile(`[^A-Za-z0-9]`)

// names maps every constant name the rows allow to its value: the mask of a
// field, its shift, and its named values in place.
func names(prefix string, fields []Field) map[string]uint32 {
	out := map[string]uint32{}
	for i := range fields {
		f := &fields[i]
		out[prefix+f.Name] = f.Mask()
		out[prefix+f.Name+"Shift"] = uint32(f.Shift)
		for _, v := range f.AltValues {
			bit := f.AltBit
			if f.AltBit == StatusPCIXMODE || f.AltBit == CtrlFRCSPD {
				bit = 0 // a condition, not a part of the value
			}
			out[prefix+f.Name+notAlnum.ReplaceAllString(v.Name, "")] = v.V<<f.Shift | bit
		}
		for _, v := range f.Values {
			out[prefix+f.Name+notAlnum.ReplaceAllString(v.Name, "")] = v.V << f.Shift
		}
	}
	return out
}

func TestConstantsAgreeWithTable(t *testing.T) {
	allowed := map[string]uint32{}
	offsets := map[string]uint32{}
	merge := func(r Reg, prefix string) {
		for n, v := range names(prefix, r.Fields) {
			allowed[n] = v
		}
	}
	for _, r := range All() {
		offsets[r.Name] = r.Offset
		merge(r, camel(r.Name))
	}
	for _, r := range PHYRegs() {
		offsets["Phy"+r.Name] = r.Offset
		merge(r, "Phy"+camel(r.Name))
	}

	consts := constants(t, "offsets.go", "bits_control.go", "bits_rxtx.go", "stats.go", "phy.go")
	// Constants which are neither offsets nor fields.
	free := regexp.MustCompile(`^(BARSize|IOADDR|IODATA|(MTA|VFTA|RAR)(Count|Stride)|(FCAL|FCAH|FCT|VET)Value|IMCAll|` +
		`Ring\w+|DescriptorBytes|DelayUnitNanos|ITRUnitNanos|FCTTVUnitBits|Collision\w+|TIPG(Copper|Fiber)|` +
		`RctlBSIZEMask|PhyAddr|PhyIDMask|PhyID82544|PhyID82540|PhyIDIGP|PhyIDExternal|PhyAnaCSMACD)$`)
	checked := 0
	for name, got := range consts {
		want, ok := offsets[name]
		if !ok {
			want, ok = allowed[name]
		}
		if !ok {
			// Words like Half follow Go's spelling, the table's do not.
			for n, v := range allowed {
				if strings.EqualFold(n, name) {
					want, ok = v, true
				}
			}
		}
		switch {
		case !ok && !free.MatchString(name):
			t.Errorf("constant %s has no row in the table", name)
		case ok && got != want:
			t.Errorf("constant %s = %#x, the table says %#x", name, got, want)
		case ok:
			checked++
		}
	}
	for name := range offsets {
		if _, ok := consts[name]; !ok {
			t.Errorf("register %s has no offset constant", name)
		}
	}
	if checked < 300 {
		t.Errorf("only %d constants were checked", checked)
	}
}
